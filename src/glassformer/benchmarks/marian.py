"""A translator like Marian three times, with the same weights. Junczys-Dowmunt et al., 2018.

    hugging_face    MarianMTModel, with random weights
    ours            our Transformer, filled from that one
    ctranslate2     a CTranslate2 translator, converted from that one

Marian's sinusoids have all sines before all cosines, ours alternate. Nothing else in a Transformer
depends on the order of channels, so our channels are permuted throughout.

PAD, from which all three start, and END have zero vectors, so that they score 0 where the likeliest
of thousands score more: neither is ever generated on its own.
"""

from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.benchmarks.peers import installed, needed
from glassformer.config import (
    AttentionConfig,
    FeedForwardConfig,
    ModelConfig,
    PositionConfig,
    StackConfig,
)
from glassformer.errors import install
from glassformer.models.build import build_transformer
from glassformer.models.transformer import Transformer

END = 0
MAX_LENGTH = 512
OUR_NAMES = {
    "layers": "blocks",
    "self_attn": "attention",
    "encoder_attn": "cross_attention",
    "self_attn_layer_norm": "attention_residual.after",
    "encoder_attn_layer_norm": "cross_residual.after",
    "final_layer_norm": "feedforward_residual.after",
    "q_proj": "to_q",
    "k_proj": "to_k",
    "v_proj": "to_v",
    "out_proj": "to_out",
    "fc1": "feedforward.widen",
    "fc2": "feedforward.narrow",
}
READS_CHANNELS = ("q_proj", "k_proj", "v_proj", "fc1")  # others write to the residual stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The shape of a translator; but for the vocabulary, that of the published ones."""

    vocabulary: int
    dim: int = 512
    depth: int = 6
    heads: int = 8
    hidden: int = 2048

    @property
    def pad(self) -> int:
        """The start token; the last one, where CTranslate2 expects it."""
        return self.vocabulary - 1


@torch.no_grad()
def hugging_face(size: Size) -> Any:
    """A MarianMTModel with random weights."""
    models = needed("transformers.models.marian.modeling_marian", "translators")
    config = models.MarianConfig(
        vocab_size=size.vocabulary,
        d_model=size.dim,
        encoder_layers=size.depth,
        decoder_layers=size.depth,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.hidden,
        decoder_ffn_dim=size.hidden,
        activation_function="swish",
        max_position_embeddings=MAX_LENGTH,
        scale_embedding=True,
        pad_token_id=size.pad,
        eos_token_id=END,
        forced_eos_token_id=None,
        decoder_start_token_id=size.pad,
    )
    torch.manual_seed(0)
    model = models.MarianMTModel(config).eval()
    for weight in model.parameters():
        if weight.ndim == 1:  # no weight stays at 0 or 1, which could hide a mistake
            weight.add_(0.1 * torch.randn_like(weight))
        elif weight.requires_grad:  # not the sinusoidal table
            nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
    model.model.shared.weight[[END, size.pad]] = 0.0
    return model


def ours(theirs: Any, size: Size) -> Transformer:
    """Our Transformer with the weights of theirs."""
    stack = StackConfig(
        dim=size.dim,
        depth=size.depth,
        dropout=0.0,
        max_length=MAX_LENGTH,
        order="post",
        position=PositionConfig("sinusoidal"),
        attention=AttentionConfig(bias=True, heads=size.heads),
        feedforward=FeedForwardConfig(kind="silu", hidden=size.hidden, bias=True),
    )
    config = ModelConfig(encoder=stack, decoder=stack, share=True)
    model = build_transformer(config, vocabulary=size.vocabulary)
    model.load_state_dict(_renamed(theirs.model.state_dict(), size.dim))
    return model.eval()


def ctranslate2(theirs: Any, size: Size, device: torch.device, dtype: str) -> Any:
    """A CTranslate2 translator with the weights of theirs; tokens are ids as text."""
    library = needed("ctranslate2", "translators")
    loader = needed("ctranslate2.converters.transformers", "translators").MarianMTLoader()
    spec = loader.get_model_spec(theirs)
    loader.set_vocabulary(spec, [str(token) for token in range(size.pad)])
    spec.config.eos_token = spec.config.unk_token = spec.config.decoder_start_token = str(END)
    spec.validate()
    spec.optimize(quantization=dtype)
    with TemporaryDirectory(prefix="glassformer-") as folder:
        spec.save(folder)
        return library.Translator(
            folder,
            device=device.type,
            compute_type=dtype,
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )


def no_ctranslate2(device: torch.device) -> str | None:
    """Why CTranslate2 cannot be used here; None if it can."""
    library = installed("ctranslate2")
    if library is None:
        return (
            "CTranslate2 is not installed, so nothing is measured against it; "
            f"{install('bench')} adds it"
        )
    if device.type == "cuda" and not library.get_cuda_device_count():
        return "CTranslate2 finds no CUDA device here, so nothing is measured against it"
    return None


def _renamed(state: dict[str, Tensor], dim: int) -> dict[str, Tensor]:
    """Their weights under our names, with the channels of the residual stream in our order."""
    order = torch.arange(dim).view(2, -1).T.flatten()  # 0, h, 1, h + 1, ... with h the half
    found: dict[str, Tensor] = {}
    for key, tensor in state.items():
        *parts, kind = key.split(".")
        if parts == ["shared"]:
            found |= {f"{name}.table.weight": tensor[:, order] for name in ("frontend", "target")}
        elif "layers" in parts:
            name = ".".join(OUR_NAMES.get(part, part) for part in (*parts, kind))
            if parts[-1] not in READS_CHANNELS:
                tensor = tensor[order]
            elif kind == "weight":
                tensor = tensor[:, order]
            found[name] = tensor
    return found
