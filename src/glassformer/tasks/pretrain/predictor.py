"""Words for the gaps of new texts."""

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config import require
from glassformer.data.batches import ordered_batches
from glassformer.data.jagged import Jagged
from glassformer.data.text.coders import SPECIALS
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.models.pooling import MeanPool
from glassformer.models.transformer import MaskedModel
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.pretrain.task import PretrainTask
from glassformer.tasks.served import Embedder
from glassformer.tasks.shared.batches import TextBatch, row_means, text_batch
from glassformer.tasks.shared.text import TextPredictor, nothing_known, unseen

GAP = "<mask>"
TAKE_BLANKS = ("bpe", "unigram")  # kinds whose words include the space before them
ALTERNATIVES = 5


class PretrainPredictor(TextPredictor[PretrainTask], Embedder):
    """The text with its gaps filled, and the alternatives for each gap."""

    alternatives: int | None = None  # shown for each gap; None for those in the details alone

    def configured(self, *, alternatives: int = 0, **options: Any) -> "PretrainPredictor":
        require(alternatives >= 0, f"alternatives must be 0 or more, got {alternatives}")
        other = copy(self)
        other.alternatives = alternatives
        return other

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Fill the gaps of texts, written <mask>."""
        device = next(model.parameters()).device
        for text in inputs:
            if not text.strip():
                yield Prediction("", 0.0, {"gaps": []}, empty=True)
                continue
            ids, gaps = self._with_gaps(text)
            row, layout = text_batch(Jagged.of([ids]), packed=False)
            none = torch.zeros(0, dtype=torch.long)
            batch = TextBatch(row, layout, none, none, torch.from_numpy(gaps)).to(device)
            with torch.no_grad():
                logits = self.task.forward(model, batch).float()
            logits[:, : len(SPECIALS)] = -math.inf
            filled = self._filled(text, logits.softmax(-1).cpu())
            around = text.replace(GAP, " ")
            [known_by] = self.tokenizer.encode([around])
            unknown = around.strip() and nothing_known(self.tokenizer, known_by)
            yield filled.without_answer(unseen(self.tokenizer)) if unknown else filled

    @property
    def tokenizer(self) -> Tokenizer:
        return self.task.tokenizer

    @torch.no_grad()
    def embed(self, model: nn.Module, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """The mean vector of each text's tokens, start included; of a long text, of its pieces."""
        assert isinstance(model, MaskedModel)
        device, room = next(model.parameters()).device, self.task.settings.max_length - 1
        encoded = self.task.tokenizer.encode(texts)
        pieces = [np.array_split(ids, max(1, -(-len(ids) // room))) for ids in encoded]
        rows = np.repeat(np.arange(len(texts)), [len(some) for some in pieces])
        every = Jagged.of([piece for some in pieces for piece in some])
        every = every.before(self.task.tokenizer.start)
        vectors: dict[int, Float[np.ndarray, " D"]] = {}
        pool = MeanPool(model.frontend.dim)
        for batch in ordered_batches(
            every.lengths, self.task.config.data.batch_tokens, padded=True
        ):
            ids, layout = text_batch(every.take(batch), packed=False)
            x = model.encoded(ids.to(device), layout=layout.to(device))
            found = pool(x, layout.to(device)).float().cpu().numpy()
            vectors |= zip(batch.tolist(), found, strict=True)
        return row_means(np.stack([vectors[n] for n in range(len(rows))]), rows, len(texts))

    def _with_gaps(
        self, text: str
    ) -> tuple[Int[np.ndarray, " tokens"], Int[np.ndarray, " positions"]]:
        """The tokens read of a text with gaps, and the positions of its gaps."""
        *before, last = text.split(GAP)
        if not before:
            raise GlassformerError(f"{text[:40]!r} has no gap to fill; write {GAP} for it")
        if self.task.tokenizer.kind in TAKE_BLANKS:
            before = [part.removesuffix(" ") for part in before]
        mask = np.array([self.task.tokenizer.mask])
        first, *others = self.task.tokenizer.encode([*before, last])
        ids = np.concatenate([first, *(ids for other in others for ids in (mask, other))])
        gaps = np.flatnonzero(ids == self.task.tokenizer.mask)
        start = self.window_of(text, gaps, len(ids))
        shown = ids[start : start + self.room]
        return np.concatenate([[self.task.tokenizer.start], shown]), gaps - start + 1

    @property
    def room(self) -> int:
        """How many tokens are read at once, besides the start token."""
        return int(self.task.settings.max_length) - 1

    def window_of(self, text: str, gaps: Int[np.ndarray, " positions"], tokens: int) -> int:
        """The first of the tokens that are read; refused if that cannot be all gaps."""
        room = self.room
        if gaps[-1] - gaps[0] >= room:
            raise GlassformerError(
                f"{text[:40]!r} has gaps {gaps[-1] - gaps[0]:,} tokens apart, but the model "
                f"reads {room:,} tokens at once; fill them one by one"
            )
        middle = int(gaps[0] + gaps[-1] + 1) // 2
        return min(max(0, middle - room // 2), max(0, tokens - room))

    def _filled(self, text: str, probabilities: Float[Tensor, "positions V"]) -> Prediction:
        """The text with its gaps filled, and the alternatives for them."""
        others = self.alternatives
        wanted = ALTERNATIVES if others is None else others + 1
        best = probabilities.topk(min(wanted, len(self.task.words())))
        whole, *rest = text.split(GAP)
        fills: list[dict[str, float]] = []
        for tokens, values, after in zip(*map(Tensor.tolist, best[::-1]), rest, strict=True):
            fill: dict[str, float] = {}
            for token, p in zip(tokens, values, strict=True):
                word = self.task.tokenizer.decode([token])
                fill[word] = fill.get(word, 0.0) + p
            fills.append(fill)
            word = next(iter(fill))
            whole += (word.removeprefix(" ") if whole[-1:] in ("", " ") else word) + after
        confidence = math.prod(next(iter(fill.values())) for fill in fills)
        lines = [
            f"  or {word.strip()}\t{p:.3f}"
            for fill in (fills if others is not None else ())
            for word, p in list(fill.items())[1:]
        ]
        return Prediction(whole, confidence, {"gaps": fills}, below=lines)
