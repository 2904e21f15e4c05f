"""Baselines: what there was before attention, behind the interface of Encoder and Decoder.

    gru, lstm   reading forwards and backwards        RecurrentEncoder
    tcn         dilated convolutions                  TCN
    gru, lstm   writing, with additive attention      BahdanauDecoder
    tcn         writing, through causal convolutions  ConvolutionalDecoder

They mix with the stacks of attention: an LSTM encoder with a Transformer decoder, and so on. Masks
they cannot obey are refused. To add one, write a module called like Encoder or Decoder and list it.
"""

from glassformer.models.baselines.bahdanau import BahdanauDecoder, RecurrentCache
from glassformer.models.baselines.convolutional import TCN
from glassformer.models.baselines.convolutional_decoder import ConvolutionalDecoder
from glassformer.models.baselines.recurrent import RecurrentEncoder

__all__ = [
    "BASELINE_DECODERS",
    "BASELINE_ENCODERS",
    "TCN",
    "BahdanauDecoder",
    "BaselineDecoder",
    "ConvolutionalDecoder",
    "RecurrentCache",
    "RecurrentEncoder",
]

BASELINE_ENCODERS: dict[str, type[RecurrentEncoder] | type[TCN]] = {
    "gru": RecurrentEncoder,
    "lstm": RecurrentEncoder,
    "tcn": TCN,
}

BaselineDecoder = BahdanauDecoder | ConvolutionalDecoder
BASELINE_DECODERS: dict[str, type[BaselineDecoder]] = {
    "gru": BahdanauDecoder,
    "lstm": BahdanauDecoder,
    "tcn": ConvolutionalDecoder,
}
