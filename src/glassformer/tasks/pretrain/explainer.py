"""What fills a gap, and why: the words around it."""

import zlib

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.data.batches import ordered_batches
from glassformer.data.jagged import Jagged
from glassformer.data.text.coders import SPECIALS
from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap, Target
from glassformer.explaining.subject import Subject, log_odds
from glassformer.explaining.text_pieces import rows_with, text_pieces
from glassformer.explaining.watching import Maps
from glassformer.models.transformer import MaskedModel, Noise
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.pretrain.predictor import ALTERNATIVES, GAP, TAKE_BLANKS, PretrainPredictor
from glassformer.tasks.pretrain.task import PretrainTask
from glassformer.tasks.shared.batches import TextBatch, text_batch
from glassformer.tasks.shared.targets import labelled_map, spelt, tokens_of_target


class GapExplainer(Explainer[PretrainTask, str]):
    """Explains the words that fill gaps."""

    def subject(
        self, model: nn.Module, given: str, *, target: str | None = None, unit: str | None = None
    ) -> "TextWithGaps":
        return TextWithGaps(self.task, model, given, target, unit or "word")

    def example(self, given: str) -> str:
        """A stored text with a gap for one of its words, the same every time."""
        pieces = list(text_pieces(self.task.tokenizer, given, "word").pieces)
        words = [n for n, piece in enumerate(pieces) if any(map(str.isalnum, piece))]
        if len(words) < 2:
            raise GlassformerError(f"{given[:40]!r} has no word to leave out; give a longer text")
        hidden = words[zlib.crc32(given.encode(errors="replace")) % len(words)]
        word = pieces[hidden].rstrip()
        pieces[hidden] = GAP + pieces[hidden][len(word) :]
        return "".join(pieces)


class TextWithGaps(Subject):
    """A text and the words that fill its gaps, which are pieces that are never left out.

    Attributes:
        read: The tokens that are read, and the piece of each; -1 for gaps and the start.
        names: These tokens as they are shown.
    """

    def __init__(
        self, task: PretrainTask, model: nn.Module, text: str, target: str | None, unit: str
    ) -> None:
        assert isinstance(model, MaskedModel)
        self.task, self.model, self.given = task, model, text
        self.device, self.predictor = next(model.parameters()).device, PretrainPredictor(task)
        [prediction] = self.predictor.predict(model, [text])  # refuses a text without a gap
        self.answer, self.reason = prediction.best, prediction.reason
        self._read(text, unit)
        self.piece_of = torch.from_numpy(self.owner)[None].to(self.device)
        places = self._gaps(self.read)
        self.readers = torch.zeros(1, len(places), 1, len(self.read), device=self.device)
        self.readers[0, range(len(places)), 0, places] = 1.0
        self._fill(target)
        masks = np.where(self.owner < 0, self.read, task.tokenizer.mask)
        batch = self._batch(Jagged.of([masks]))
        with torch.no_grad():
            self.blank, _ = model.frontend(batch.ids, batch.layout)

    def _read(self, text: str, unit: str) -> None:
        """Cut what is read of the text into pieces."""
        tokenizer, parts = self.task.tokenizer, text.split(GAP)
        pieces, ids, owner = list[str](), list[int](), list[int]()
        names, strange = [tokenizer.pieces([tokenizer.start])[0]], list[int]()
        for number, part in enumerate(parts):
            if number:
                pieces.append(GAP)
                ids.append(tokenizer.mask)
                owner.append(-1)
                names.append(GAP)
            last = number + 1 == len(parts)
            blank = " " if part.endswith(" ") and tokenizer.kind in TAKE_BLANKS and not last else ""
            found = text_pieces(tokenizer, part.removesuffix(blank), unit)
            owner += (found.piece_of + len(pieces)).tolist()
            names += found.names
            strange += [len(pieces) + at for at in found.strange]
            pieces += found.pieces or ((part,) if part else ())
            if blank and found.pieces:
                pieces[-1] += blank
            ids += found.ids.tolist()
        every = np.array(ids)
        gaps = np.flatnonzero(every == tokenizer.mask)
        start = self.predictor.window_of(text, gaps, len(every))
        shown = slice(start, start + self.predictor.room)
        self.read = np.concatenate([[tokenizer.start], every[shown]])
        self.owner = np.concatenate([[-1], np.array(owner)[shown]])
        self.names = [names[0], *names[1:][shown]]
        self.pieces, self.strange = tuple(pieces), strange

    def _gaps(self, ids: Int[np.ndarray, " tokens"]) -> Int[np.ndarray, " gaps"]:
        return np.flatnonzero(ids == self.task.tokenizer.mask)

    @torch.no_grad()
    def _fill(self, target: str | None) -> None:
        """What fills each gap, and what else was likely."""
        probabilities = self._logits(self.model, Jagged.of([self.read]))[0].softmax(-1).cpu()
        tokenizer = self.task.tokenizer
        chosen = probabilities.argmax(-1).tolist()
        if target is not None:
            chosen = [self._token_of(target)] * len(chosen)
        self.chosen = torch.tensor(chosen, device=self.device)
        targets = []
        for token, line in zip(chosen, probabilities, strict=True):
            best = line.topk(min(ALTERNATIVES + 1, len(line)))
            others = [
                (spelt(tokenizer, [other]), p)
                for p, other in zip(*map(Tensor.tolist, best), strict=True)
                if other != token and p > 0
            ]
            text = spelt(tokenizer, [token])
            targets.append(
                Target(text=text, probability=float(line[token]), alternatives=tuple(others[:4]))
            )
        self.targets = tuple(targets)

    def _token_of(self, target: str) -> int:
        """The token of a word that may fill a gap."""
        blank = " " if self.task.tokenizer.kind in TAKE_BLANKS else ""
        ids = tokens_of_target(self.task.tokenizer, blank + target.strip())
        if len(ids) != 1:
            raise GlassformerError(
                f"a gap takes one token, but {target[:40]!r} has {len(ids)}; give a shorter word"
            )
        return ids[0]

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        return self._odds(self._logits(model, Jagged.of([self.read] * copies), noise))

    @torch.no_grad()
    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        rows = rows_with(Jagged.of([self.read]), self.owner, kept.numpy())
        found = torch.zeros(len(kept), len(self.targets))
        for some in ordered_batches(rows.lengths, self.task.config.data.batch_tokens, padded=True):
            found[torch.from_numpy(some)] = self._odds(
                self._logits(self.model, rows.take(some))
            ).cpu()
        return found

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        return tuple(labelled_map(name, maps[name][0], self.names, self.names) for name in maps)

    def _batch(self, rows: Jagged) -> TextBatch:
        ids, layout = text_batch(rows, packed=False)
        places = np.concatenate(
            [self._gaps(row) + n * layout.longest for n, row in enumerate(rows.rows)]
        )
        none = torch.zeros(0, dtype=torch.long)
        batch: TextBatch = TextBatch(ids, layout, none, none, torch.from_numpy(places)).to(
            self.device
        )
        return batch

    def _logits(
        self, model: nn.Module, rows: Jagged, noise: Noise | None = None
    ) -> Float[Tensor, "rows gaps V"]:
        logits = self.task.forward(model, self._batch(rows), noise=noise).float()
        special = torch.arange(logits.shape[-1], device=logits.device) < len(SPECIALS)
        return logits.masked_fill(special, -torch.inf).unflatten(0, (len(rows.lengths), -1))

    def _odds(self, logits: Float[Tensor, "rows gaps V"]) -> Float[Tensor, "rows gaps"]:
        return log_odds(logits, self.chosen.expand(logits.shape[:2]))
