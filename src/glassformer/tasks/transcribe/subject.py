"""A sound and its transcript, as methods of explanation see them."""

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.data.audio.reading import Sound as Samples
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode.ctc import Span, ctc_align
from glassformer.errors import GlassformerError
from glassformer.explaining.hearing import hear
from glassformer.explaining.parts import AttentionMap, Sound
from glassformer.explaining.subject import Subject
from glassformer.explaining.watching import Maps, cross_attentions
from glassformer.models.transcriber import Scored, Transcriber
from glassformer.models.transformer import Noise
from glassformer.tasks.shared.sound import FRAMES_A_SECOND, vectors_of
from glassformer.tasks.shared.targets import (
    labelled_map,
    odds_of_nll,
    spelt,
    token_nll,
    tokens_of_target,
    word_target,
)
from glassformer.tasks.transcribe.picture import ticks
from glassformer.tasks.transcribe.predictor import TOGETHER
from glassformer.tasks.transcribe.searching import Searcher
from glassformer.tasks.transcribe.sounds import BLANK, writable
from glassformer.tasks.transcribe.task import TranscribeTask
from glassformer.tasks.transcribe.transcripts import Word, words_of

SHORTEST, MOST = 0.04, 60  # seconds of a piece, and pieces of a sound


class HeardText(Subject):
    """A sound and the words of its transcript; of a single word, its tokens.

    A stretch that is left out has the mean of the sound's features, as where SpecAugment hides one.
    A word is scored as the run searches: by the decoder, given the words before it, by CTC at the
    frames that the word is aligned with, or by both.
    """

    model: Transcriber

    def __init__(
        self,
        task: TranscribeTask,
        searcher: Searcher,
        model: nn.Module,
        sound: Samples,
        name: str,
        target: str | None,
    ) -> None:
        assert isinstance(model, Transcriber)
        self.task, self.model, self.given, self.samples = task, model, name, sound
        self.device = next(model.parameters()).device
        self.share, self.writes = searcher.share, model.decoder is not None  # the share of CTC
        features = task.features(sound)
        self.features = torch.from_numpy(features.astype(np.float32)).to(self.device)
        self._cut()
        if target is None:
            [written] = searcher.write(model, [features])
            self.tokens = list(written.tokens)
        else:
            self.tokens = tokens_of_target(task.tokenizer, task.normalise(target))
        self.answer = " ".join(task.tokenizer.decode(self.tokens).split())
        self.words = words_or_tokens(task.tokenizer, self.tokens)
        if not self.words:
            raise GlassformerError(
                f"{name}: no words were heard; give the words to explain as a target"
            )
        self._find_targets()

    def _cut(self) -> None:
        """Cut the sound into stretches of equal length."""
        factor, frames = self.task.factor, len(self.features)
        vectors = vectors_of(frames, factor)
        self.vector = factor / FRAMES_A_SECOND  # seconds
        size = max(round(SHORTEST / self.vector), -(-vectors // MOST), 1)
        self.frame_piece = torch.arange(frames, device=self.device) // (factor * size)
        self.piece_of = torch.arange(vectors, device=self.device)[None] // size
        seconds = frames / FRAMES_A_SECOND
        edges = [*(start * self.vector for start in range(0, vectors, size)), seconds]
        self.stretches = tuple(pairwise(edges))
        self.pieces = tuple(f"{start:.2f}-{end:.2f}" for start, end in self.stretches)

    @torch.no_grad()
    def _find_targets(self) -> None:
        """Where each word was heard, how likely it was, and what else was likely."""
        mean = self.features.mean(0).expand(1, len(self.features), -1)
        self.blank, _ = self.model.frontend(mean, Layout.full(1, len(self.features), self.device))
        scored = self._forward(self.model, self.features[None])
        frames, spans = scored.frames[0].float().log_softmax(-1), None
        if self.task.settings.ctc_weight:
            every = writable(frames)[None]
            [spans] = ctc_align(every, [len(frames)], [self.tokens], blank=BLANK)
        if spans is None and self.share:
            raise GlassformerError(
                f"{self.given}: is too short for {self.answer[:40]!r}; give a shorter target"
            )
        self.aligned = aligned_frames(spans or [], len(frames)).to(self.device)
        self.table = table_of(self.words, len(self.tokens)).to(self.device)
        means = self.table / self.table.sum(1, keepdim=True)
        self.readers = (means if self.writes else means @ self.aligned)[None, :, None]
        log_probs = torch.zeros(len(self.tokens), frames.shape[-1])
        if self.share:
            log_probs += self.share * (self.aligned @ frames).cpu()
        if scored.written is not None:
            log_probs += (1 - self.share) * scored.written[0].float().log_softmax(-1).cpu()
        times = self._times(spans)
        self.targets = tuple(
            word_target(
                word.text,
                log_probs,
                self.tokens,
                word.tokens,
                partial(spelt, self.task.tokenizer),
                never=(Tokenizer.unknown, Tokenizer.start, BLANK),
                time=time,
            )
            for word, time in zip(self.words, times, strict=True)
        )
        tokens = sorted({*self.tokens})
        self.symbols = ("", *self.task.tokenizer.pieces(tokens))
        self.posteriors = frames[:, [BLANK, *tokens]].exp().cpu()

    def _times(self, spans: Sequence[Span] | None) -> list[tuple[float, float]]:
        """When each word is spoken, in seconds: by CTC, or by the decoder's attention."""
        if spans is None:
            heard = hear(self.model, self.features, self.tokens, first=Tokenizer.start)
            assert heard.attention is not None
            most = heard.attention.argmax(1).tolist()
            spans = [Span(at, at + 1) for at in most]
        seconds = len(self.features) / FRAMES_A_SECOND
        bounds = [[spans[token] for token in word.tokens] for word in self.words]
        return [
            (
                min(span.start for span in some) * self.vector,
                min(seconds, max(span.end for span in some) * self.vector),
            )
            for some in bounds
        ]

    @cached_property
    def sound(self) -> Sound:
        """What was heard, as pictures show it."""
        settings, by_ctc = self.task.settings, self.task.settings.ctc_weight > 0
        return Sound(
            samples=torch.from_numpy(self.samples),
            rate=settings.rate,
            spectrogram=self.features.cpu(),
            frame=1 / FRAMES_A_SECOND,
            vector=self.vector,
            posteriors=self.posteriors if by_ctc else None,
            symbols=self.symbols if by_ctc else (),
            stretches=self.stretches,
            unit="Hz" if settings.features == "mel" else "cepstra",
            ticks=tuple(ticks(self.task)),
        )

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        features = self.features.expand(copies, -1, -1)
        return self._odds(self._forward(model, features, noise=noise))

    @torch.no_grad()
    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        heard = kept.to(self.device)[:, self.frame_piece, None]  # (variants, frames, 1)
        mean = self.features.mean(0)
        most = max(1, TOGETHER * FRAMES_A_SECOND // len(self.features))
        return torch.cat(
            [
                self._odds(self._forward(self.model, torch.where(some, self.features, mean)))
                for some in heard.split(most)
            ]
        )

    def _forward(
        self,
        model: nn.Module,
        features: Float[Tensor, "rows frames M"],
        *,
        noise: Noise | None = None,
    ) -> Scored:
        """Scores of every frame, and of each next token if there is a decoder."""
        rows, frames, _ = features.shape
        source, target = Layout.full(rows, frames, self.device), None
        decoder_input = None
        if self.writes:
            target = Layout.full(rows, len(self.tokens), self.device)
            before = torch.tensor([[Tokenizer.start, *self.tokens[:-1]]], device=self.device)
            decoder_input = before.expand(rows, -1)
        found: Scored = model(features, decoder_input, source=source, target=target, noise=noise)
        return found

    def _odds(self, scored: Scored) -> Float[Tensor, "rows targets"]:
        """The log-odds of each word: the scores of its tokens, each the mean of its frames."""
        tokens = torch.tensor(self.tokens, device=self.device)
        rows = len(scored.frames)
        nll = torch.zeros(rows, len(tokens), device=self.device)
        if self.share:
            token, frame = self.aligned.nonzero(as_tuple=True)
            heard = scored.frames.float()[:, frame]  # (rows, aligned frames, V)
            each = token_nll(heard, tokens[token].expand(rows, -1)) * self.aligned[token, frame]
            nll = nll.index_add(1, token, self.share * each)
        if scored.written is not None:
            each = token_nll(scored.written.float(), tokens.expand(rows, -1))
            nll = nll + (1 - self.share) * each
        return odds_of_nll(nll @ self.table.mT)

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        pieces = self.task.tokenizer.pieces
        times = [f"{at * self.vector:.2f}" for at in range(self.piece_of.shape[1])]
        written, before = pieces(self.tokens), pieces([Tokenizer.start, *self.tokens[:-1]])
        across = cross_attentions(self.model)
        found = []
        for name, weights in maps.items():
            queries, keys = (written, before) if name.startswith("decoder") else (times, times)
            keys = times if name in across else keys
            found.append(labelled_map(name, weights[0], queries, keys))
        return tuple(found)


def words_or_tokens(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[Word]:
    """The words of a transcript; of a single word, its tokens."""
    words = words_of(tokenizer, tokens)
    if len(words) != 1:
        return words
    [word] = words
    return [Word(tokenizer.decode([tokens[place]]).strip(), (place,)) for place in word.tokens]


def table_of(words: Sequence[Word], tokens: int) -> Float[Tensor, "words tokens"]:
    """1 at the tokens of each word."""
    table = torch.zeros(len(words), tokens)
    for row, word in enumerate(words):
        table[row, list(word.tokens)] = 1.0
    return table


def aligned_frames(spans: Sequence[Span], frames: int) -> Float[Tensor, "tokens frames"]:
    """The share of each frame in the score of the token that is aligned with it."""
    table = torch.zeros(len(spans), frames)
    for row, span in enumerate(spans):
        table[row, span.start : span.end] = 1 / (span.end - span.start)
    return table
