"""Baselines: architectures from before the Transformer, behind the same interface.

    gru, lstm   encoder, bidirectional                RecurrentEncoder
    tcn         encoder of dilated convolutions       TCN
    gru, lstm   decoder with additive attention       BahdanauDecoder
    tcn         decoder of causal convolutions        ConvolutionalDecoder

They combine with attention stacks: an LSTM encoder with a Transformer decoder, and so on. Masks
they cannot apply are refused. To add one, write a module called like Encoder or Decoder and list
it here.
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
