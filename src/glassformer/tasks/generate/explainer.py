"""What each token of a continuation is based on: the prompt, and what was written before it."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.masks import causal
from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.explaining.parts import AttentionMap, Target
from glassformer.explaining.subject import Subject
from glassformer.explaining.text_pieces import text_pieces
from glassformer.explaining.watching import Maps
from glassformer.models.transformer import LanguageModel, Noise, embedded, scored
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.generate.predictor import NEVER, GeneratePredictor, unseen_prompt
from glassformer.tasks.generate.task import GenerateTask
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.batches import text_batch
from glassformer.tasks.shared.targets import (
    labelled_map,
    odds_of_nll,
    token_nll,
    tokens_of_target,
    word_target,
)

READ, WRITTEN = 256, 24  # the last tokens of a prompt, and of its continuation, at most
EXAMPLE = 400  # characters of a stored text that are continued
MOST_TOKENS = 4096  # read at once


class GenerateExplainer(Explainer[GenerateTask, str]):
    """Explains continuations, or given ones as if they were written."""

    def __init__(self, task: GenerateTask) -> None:
        super().__init__(task)
        self.predictor = GeneratePredictor(task)

    def configured(self, **options: Any) -> "GenerateExplainer":
        other = copy(self)
        other.predictor = self.predictor.configured(**options)
        return other

    def example(self, given: str) -> str:
        """The beginning of a stored text, up to the end of a word."""
        start = given[:EXAMPLE]
        words = start.rsplit(maxsplit=1)
        return words[0] if len(given) > EXAMPLE and len(words) > 1 else start

    def subject(
        self, model: nn.Module, given: str, *, target: str | None = None, unit: str | None = None
    ) -> "ContinuedText":
        tokenizer = self.task.tokenizer
        longest = max(1, min(READ, self.task.settings.max_length - WRITTEN))
        prompt = last_tokens(tokenizer, given, longest)
        if target is not None:
            written = tokens_of_target(tokenizer, target)[:WRITTEN]
        else:
            written = self._continued(model, prompt)
        subject = ContinuedText(self.task, model, prompt, written, unit or "word")
        if prompt != given:
            subject.given = f"… {prompt}"
            subject.notes = (f"Only the last {longest:,} tokens of the prompt are explained.",)
        return subject

    def _continued(self, model: nn.Module, prompt: str) -> list[int]:
        """The tokens that a prompt is continued with, the end included."""
        predictor, decode = copy(self.predictor), self.predictor.decode
        most = min(WRITTEN, decode.max_length)
        predictor.decode = replace(decode, max_length=most, min_length=min(most, decode.min_length))
        *_, found = predictor.predict(model, [prompt])
        assert isinstance(found, Prediction)
        return [token["id"] for token in (found.guess or found).details["tokens"]]


class ContinuedText(Subject):
    """A prompt and the tokens that continue it.

    Pieces are words of the prompt and, as these are the targets, tokens of what was written. One
    that is left out is not there at all, and a token is then predicted from what is left before it.
    A later piece never matters.
    """

    model: LanguageModel
    names: Sequence[str]  # of the start and the tokens of the prompt, as they are shown

    def __init__(
        self, task: GenerateTask, model: nn.Module, prompt: str, written: list[int], unit: str
    ) -> None:
        assert isinstance(model, LanguageModel)
        self.task, self.model, self.given = task, model, prompt
        self.device, self.ids = next(model.parameters()).device, written
        tokenizer = task.tokenizer
        self.answer = tokenizer.decode(written)
        found = text_pieces(tokenizer, prompt, unit)
        self.pieces = (*found.pieces, *tokenizer.pieces(written[:-1]))
        self.strange = found.strange
        self.reason = unseen_prompt(tokenizer, prompt, found.ids)
        self.names = [*tokenizer.pieces([Tokenizer.start]), *found.names]
        of_written = np.arange(len(written) - 1) + len(found.pieces)
        self.read = np.concatenate([[Tokenizer.start], found.ids, written[:-1]]).astype(np.int64)
        self.owner = np.concatenate([[-1], found.piece_of, of_written]).astype(np.int64)
        self.piece_of = torch.from_numpy(self.owner)[None].to(self.device)
        self.first = len(found.ids)  # the position from which the first target is predicted
        self.readers = torch.zeros(1, len(written), 1, len(self.read), device=self.device)
        self.readers[0, range(len(written)), 0, range(self.first, len(self.read))] = 1.0
        first_token = torch.tensor([(self.owner == n).argmax() for n in range(len(self.pieces))])
        predicted_at = torch.arange(self.first, len(self.read))
        self.readable = first_token <= predicted_at[:, None]
        self.targets = self._targets()

    @torch.no_grad()
    def _targets(self) -> tuple[Target, ...]:
        """The tokens of the continuation, with what else was likely."""
        unknown = torch.from_numpy(np.where(self.owner < 0, self.read, Tokenizer.unknown))[None]
        layout = Layout.full(1, len(self.read), self.device)
        self.blank, _ = self.model.tokens(unknown.to(self.device), layout)
        log_probs = self._logits(self.model, [self.read])[0].log_softmax(-1).cpu()
        entropies = -(log_probs.exp() * log_probs).sum(-1) / np.log(2)
        targets = []
        for place, entropy in enumerate(entropies.tolist()):
            text = self._piece(self.ids[place : place + 1])
            one = word_target(text, log_probs, self.ids, [place], self._piece, never=NEVER)
            targets.append(replace(one, entropy=entropy))
        return tuple(targets)

    def _piece(self, ids: Sequence[int]) -> str:
        return self.task.tokenizer.pieces(list(ids))[-1]

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        return self._odds(self._logits(model, [self.read] * copies, noise=noise))

    @torch.no_grad()
    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        stays = np.ones((len(kept), 1), dtype=bool)
        read = np.concatenate([kept.cpu().numpy(), stays], axis=1)[:, self.owner]  # (variants, T)
        most = max(1, MOST_TOKENS // len(self.read))
        some = (read[first : first + most] for first in range(0, len(read), most))
        return torch.cat([self._odds(self._without(one)) for one in some])

    def _without(self, read: Bool[np.ndarray, "rows T"]) -> Float[Tensor, "rows targets V"]:
        """The scores of each target after what is left before it."""
        left = read.cumsum(1)[:, self.first :] - 1
        return self._logits(self.model, [self.read[line] for line in read], places=left)

    def _logits(
        self,
        model: nn.Module,
        rows: Sequence[Int[np.ndarray, " _"]],
        *,
        places: Int[np.ndarray, "rows targets"] | None = None,
        noise: Noise | None = None,
    ) -> Float[Tensor, "rows targets V"]:
        """Scores of the token after each of some places; by default, of each target.

        No others are computed: they would take most of the time and memory.
        """
        assert isinstance(model, LanguageModel)
        ids, layout = text_batch(Jagged.of(rows), packed=False)
        if layout.tokens == ids.numel():
            layout = Layout.full(*ids.shape)
        layout = layout.to(self.device)
        x, layout = embedded(model.tokens, ids.to(self.device), layout, noise)
        x = model.decoder(x, layout=layout, mask=causal)  # (rows, T, D)
        if places is None:
            x = x[:, self.first :]
        else:
            x = x.take_along_dim(torch.from_numpy(places).to(self.device)[..., None], 1)
        return scored(x, model.tokens, model.unembed).float()

    def _odds(self, logits: Float[Tensor, "rows targets V"]) -> Float[Tensor, "rows targets"]:
        chosen = torch.tensor(self.ids, device=logits.device).expand(len(logits), -1)
        return odds_of_nll(token_nll(logits, chosen))

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        """What each written token attended to when it was chosen."""
        written = self.task.tokenizer.pieces(self.ids)
        read = [*self.names, *written[:-1]]
        return tuple(
            labelled_map(name, maps.rows(name, queries=slice(self.first, None))[0], written, read)
            for name in maps
        )


def last_tokens(tokenizer: Tokenizer, text: str, longest: int) -> str:
    """The end of a text: so many tokens of it."""
    read = tokenizer.clean(text)
    spans = tokenizer.spans(read)
    return read[spans[-longest, 0] :] if len(spans) > longest else text
