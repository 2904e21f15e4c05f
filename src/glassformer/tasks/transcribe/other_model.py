"""The language model of another run, in place of n-grams of the transcripts.

It reads the same tokens, or characters or bytes of its own: each of ours is one of its tokens.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config import require
from glassformer.core.layout import Layout
from glassformer.data.text.coders import SPECIALS
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Fusion
from glassformer.errors import GlassformerError
from glassformer.models.transformer import LanguageModel, embedded, scored
from glassformer.tasks.extension import Companion
from glassformer.tasks.transcribe.language_model import USUAL
from glassformer.tasks.transcribe.searching import Searcher

ALONE = ("characters", "bytes")  # kinds of tokens that do not depend on those beside them


class OtherModel:
    """Log-probabilities of the next token; the `NextTokens` of a fusion.

    Args:
        ids: The token of the language model for each of ours.
        longest: The most tokens that it reads.
    """

    def __init__(self, model: LanguageModel, ids: Int[Tensor, " V"], longest: int) -> None:
        self.model, self.longest = model, longest
        self.ids = ids.to(next(model.parameters()).device)

    @torch.no_grad()
    def __call__(
        self, tokens: Int[Tensor, "N L"], sizes: Int[Tensor, " N"]
    ) -> Float[Tensor, "N V"]:
        if not len(tokens):
            return torch.zeros(0, len(self.ids), device=tokens.device)
        whole = torch.nn.functional.pad(self.ids[tokens], (1, 0), value=Tokenizer.start)
        begins = (sizes + 1 - self.longest).clamp(min=0)[:, None]
        place = torch.arange(whole.shape[1], device=whole.device)
        read = (place >= begins) & (place <= sizes[:, None])
        layout = Layout.packed(read.sum(1).cpu()).to(whole.device)
        x, layout = embedded(self.model.tokens, whole[read], layout, None)
        x = self.model.decoder(x, layout=layout)[read.sum(1).cumsum(0) - 1]
        scores = scored(x, self.model.tokens, self.model.unembed).float()
        return scores.log_softmax(-1)[:, self.ids]


def open_other(
    lm: Companion, tokenizer: Tokenizer, searcher: Searcher, weight: float | None
) -> Fusion:
    """The fusion with another run, whose weight is by default that of the n-grams."""
    if not isinstance(lm.model, LanguageModel):
        raise GlassformerError(f"{lm.path}: a run of {lm.job}; --lm takes one of `train generate`")
    require(
        searcher.decode.method == "beam",
        "--lm needs a search by beam; train with --set task.decode.method=beam",
    )
    require(weight is None or weight > 0, f"--lm-weight must be above 0, got {weight}")
    known = USUAL if searcher.fusion is None else searcher.fusion.weight
    ids = torch.tensor(tokens_in(lm, tokenizer))
    other = OtherModel(lm.model, ids, lm.task.settings.max_length)
    return Fusion(other, weight or known, Tokenizer.end)


def tokens_in(lm: Companion, tokenizer: Tokenizer) -> list[int]:
    """The token of a language model for each of ours; specials are the same."""
    theirs: Tokenizer = lm.task.tokenizer
    if theirs.coder.tokens == tokenizer.coder.tokens:
        return list(range(tokenizer.size))
    if theirs.kind != tokenizer.kind or theirs.kind not in ALONE:
        raise GlassformerError(
            f"{lm.path}: reads other tokens ({theirs.kind}) than this run writes "
            f"({tokenizer.kind}); train both with data.tokenizer.kind=characters"
        )
    texts = [tokenizer.decode([token]) for token in range(len(SPECIALS), tokenizer.size)]
    found = [ids.tolist() for ids in theirs.encode(texts)]
    for text, ids in zip(texts, found, strict=True):
        if len(ids) != 1 or ids[0] == Tokenizer.unknown:
            raise GlassformerError(
                f"{lm.path}: never read {text!r}, which this run writes; train it on texts like "
                f"the transcripts, also in upper or lower case"
            )
    return [*range(len(SPECIALS)), *(ids[0] for ids in found)]
