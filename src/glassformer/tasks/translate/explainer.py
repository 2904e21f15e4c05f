"""What each word of a translation is based on: words of the source."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.explaining.alignment import word_table
from glassformer.explaining.parts import AttentionMap, Branch, Target
from glassformer.explaining.subject import Subject
from glassformer.explaining.text_pieces import rows_with, text_pieces
from glassformer.explaining.watching import Maps, cross_attentions
from glassformer.models.transformer import Noise, Transformer
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.shared.batches import text_batch
from glassformer.tasks.shared.targets import (
    labelled_map,
    odds_of_nll,
    spelt,
    token_nll,
    tokens_of_target,
    word_target,
)
from glassformer.tasks.shared.text import nothing_known, unseen
from glassformer.tasks.translate.predictor import TranslatePredictor
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.writing import Writer

CROSS = {"decoder.attention": "decoder.cross_attention"}  # of a recurrent decoder
MOST_SCORES = 1 << 24  # numbers in the scores of a batch


class TranslateExplainer(Explainer[TranslateTask, str]):
    """Explains translations, or given texts as if they were written."""

    def __init__(self, task: TranslateTask) -> None:
        super().__init__(task)
        self.writer = task.writer

    def configured(self, **options: Any) -> "TranslateExplainer":
        other = copy(self)
        other.writer = TranslatePredictor(self.task).configured(**options).writer
        return other

    def subject(
        self, model: nn.Module, given: str, *, target: str | None = None, unit: str | None = None
    ) -> "TranslatedText":
        return TranslatedText(self.task, self.writer, model, given, target, unit)


class TranslatedText(Subject):
    """A text and the words of its translation.

    What is not read of a long text has no pieces. A piece that is left out is not there at all:
    the source is shorter by its tokens.
    """

    model: Transformer

    def __init__(
        self,
        task: TranslateTask,
        writer: Writer,
        model: nn.Module,
        text: str,
        target: str | None,
        unit: str | None,
    ) -> None:
        assert isinstance(model, Transformer)
        self.task, self.writer, self.model, self.given = task, writer, model, text
        self.device = next(model.parameters()).device
        self._read(text, unit)
        self.searched = target is None
        if target is None:
            written = self._written()
        else:
            written = tokens_of_target(task.pair.target, target)[: task.settings.max_length]
        if not written:
            raise GlassformerError(f"the translation of {text[:40]!r} is empty; give another text")
        self.ids, self.answer = written, writer.text(written)
        self.decoder_input = [Tokenizer.start, *written[:-1]]
        if unit == "token":
            table, self.words = torch.eye(len(written)), [writer.piece(token) for token in written]
        else:
            table, words = word_table(task.pair.target, written)
            self.words = spaced(words, self.answer)
        self.table = table.to(self.device)
        self.means = self.table / self.table.sum(1, keepdim=True)
        self.readers = self.means[None, :, None]
        self.targets = self._targets()

    @torch.no_grad()
    def _targets(self) -> tuple[Target, ...]:
        """The words of the translation, with what else was likely."""
        unknown = np.where(self.piece_of[0].cpu().numpy() < 0, self.source, Tokenizer.unknown)
        self.blank, _ = self.model.frontend(*self._rows([unknown]))
        log_probs = self._forward(self.model, [self.source])[0].log_softmax(-1).cpu()
        spell, never = partial(spelt, self.task.pair.target), self.writer.never
        places = [line.nonzero()[:, 0].tolist() for line in self.table.cpu()]
        return tuple(
            word_target(word, log_probs, self.ids, some, spell, never=never)
            for word, some in zip(self.words, places, strict=True)
        )

    def _read(self, text: str, unit: str | None) -> None:
        """Keep the tokens that are read, with a tag and the end."""
        pair, longest = self.task.pair, self.task.settings.max_length
        bare, tag = pair.tagged(text)
        found = text_pieces(pair.source, bare, unit or "word")
        if unit is None and len(found.pieces) == 1:  # such as a word to be spelt
            found = text_pieces(pair.source, bare, "token")
        if not bare.strip():
            raise GlassformerError(f"{text[:40]!r} has no word to explain; give a text")
        self.strange = found.strange
        self.reason = unseen(pair.source) if nothing_known(pair.source, found.ids) else ""
        self.names = found.names[:longest]
        owner = found.piece_of[:longest]
        self.pieces = found.pieces[: owner[-1] + 1]
        if len(self.pieces) < len(found.pieces):
            left_out = len(found.pieces) - len(self.pieces)
            self.notes = (
                f"The text is too long; words at its end that are not read: {left_out:,}.",
            )
        self.source = pair.read(Jagged.of([found.ids[:longest]]), tag).values
        ends = np.array([-1])
        owner = np.concatenate([ends if pair.tags else ends[:0], owner, ends])
        self.piece_of = torch.from_numpy(owner)[None].to(self.device)

    def _written(self) -> list[int]:
        """The tokens of the translation, without its end."""
        [answers] = self.writer.write_all(self.model, [self.source], len(self.source))
        return [token.id for token in answers[0].tokens if token.id != Tokenizer.end]

    @cached_property
    def beam(self) -> Sequence[Sequence[Branch]]:
        """The branches of the search; none where it was no beam search."""
        if not self.searched:
            return ()
        right = (*self.ids, Tokenizer.end)
        return [
            [
                Branch(
                    token=self.writer.piece(one.tokens[-1]),
                    score=one.score,
                    parent=one.parent,
                    kept=one.tokens == right[: len(one.tokens)],
                )
                for one in step
            ]
            for step in self.writer.beam_steps(self.model, *self._rows([self.source]))
        ]

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        return self._odds(self._forward(model, [self.source] * copies, noise=noise))

    @torch.no_grad()
    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        owner, source = self.piece_of[0].cpu().numpy(), Jagged.of([self.source])
        rows = rows_with(source, owner, kept.cpu().numpy()).rows
        most = max(1, MOST_SCORES // (len(self.ids) * self.task.pair.target_size))
        some = (rows[first : first + most] for first in range(0, len(rows), most))
        return torch.cat([self._odds(self._forward(self.model, one)) for one in some])

    def _rows(self, sources: Sequence[Int[np.ndarray, " _"]]) -> tuple[Tensor, Layout]:
        ids, layout = text_batch(Jagged.of(sources), packed=False)
        return ids.to(self.device), layout.to(self.device)

    def _forward(
        self,
        model: nn.Module,
        sources: Sequence[Int[np.ndarray, " _"]],
        *,
        noise: Noise | None = None,
    ) -> Float[Tensor, "rows T V"]:
        """Scores of each next token of the translation, given the right ones before it."""
        ids, layout = self._rows(sources)
        target = Layout.full(len(sources), len(self.ids), self.device)
        before = torch.tensor([self.decoder_input], device=self.device)
        decoder_input = before.expand(len(sources), -1)
        found: Tensor = model(ids, decoder_input, source=layout, target=target, noise=noise)
        return found.float()

    def _odds(self, logits: Float[Tensor, "rows T V"]) -> Float[Tensor, "rows targets"]:
        chosen = torch.tensor(self.ids, device=logits.device).expand(len(logits), -1)
        return odds_of_nll(token_nll(logits, chosen) @ self.table.mT)

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        """Attention between tokens, but from words to pieces where the decoder reads the source."""
        piece, across = self.writer.piece, cross_attentions(self.model)
        source = [self._source_piece(token) for token in self.source.tolist()]
        first = len(source) - 1 - len(self.names)  # after a tag, and before the end
        source[first:-1] = self.names
        written, before = ([piece(t) for t in ids] for ids in (self.ids, self.decoder_input))
        names, merged = self._keys(source)
        found = []
        for name, weights in maps.items():
            if name in across:
                by_word = self.means @ weights[0] @ merged  # (H, words, keys)
                found.append(labelled_map(CROSS.get(name, name), by_word, self.words, names))
            elif name.startswith("encoder"):
                found.append(labelled_map(name, weights[0], source, source))
            else:
                found.append(labelled_map(name, weights[0], written, before))
        return tuple(found)

    def _keys(self, source: Sequence[str]) -> tuple[list[str], Float[Tensor, "S keys"]]:
        """The pieces and the special tokens around them, and which tokens belong to each."""
        owner = self.piece_of[0].tolist()
        keys = [piece if piece >= 0 else -1 - at for at, piece in enumerate(owner)]
        order = list(dict.fromkeys(keys))
        names = [self.pieces[key] if key >= 0 else source[-1 - key] for key in order]
        return names, torch.eye(len(order), device=self.device)[[order.index(k) for k in keys]]

    def _source_piece(self, token: int) -> str:
        tokens, tags = self.task.pair.source, self.task.pair.tags
        if token < tokens.size:
            return tokens.pieces([token])[0]
        return f"<{tags[token - tokens.size]}>"


def spaced(words: Sequence[str], text: str) -> list[str]:
    """The words of a text, each with the blank before it, if there is one.

    >>> spaced(["l'", "eau", "est", "froide", "."], "l'eau est froide.")
    ["l'", 'eau', ' est', ' froide', '.']
    """
    found, end = [], 0
    for word in words:
        start = text.find(word, end)
        blank = text[end : max(end, start)]
        found.append(word if blank.strip() else blank + word)
        end = max(end, start) + len(word)
    return found
