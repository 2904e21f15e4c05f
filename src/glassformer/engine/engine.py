"""Engine: answers many requests at once, a token of each in every step."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.decode.paths import Hypothesis
from glassformer.engine.generation import Generation, GenerationRequest
from glassformer.engine.paged_decoder import PagedDecoder
from glassformer.engine.sampling import choose
from glassformer.engine.scheduler import Reading, Scheduler
from glassformer.errors import GlassformerError
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import LanguageModel, Transformer


@dataclass(frozen=True, slots=True)
class Progress:
    """A token that was just chosen.

    Attributes:
        number: Of the request.
        token: The token; -1 if none was left to choose.
        finished: Whether it was the last.
        answer: The whole answer, if it was; None if the request got stuck.
    """

    number: int
    token: int
    finished: bool
    answer: Hypothesis | None


class Engine:
    """Requests come and go at every step; they share the model and a bounded memory.

        engine = Engine(model, pages=1024)
        number = engine.submit(GenerationRequest(prompt=(1, 5, 9)))
        while engine.busy:
            for progress in engine.step():
                ...

    Args:
        model: A language model, or an encoder-decoder, in evaluation mode.
        pages, memory_pages: The memory for tokens, and for encoded sources.
        page_size: Tokens in a page.
        chunk: The most tokens of prompts to read in a step.
        exact: Whether an answer is the same to the last bit whatever runs beside it: each request
            is then computed by itself, which is slower.
        dtype: Of keys and values; by default, that of the weights.
    """

    def __init__(
        self,
        model: LanguageModel | Transformer | Transcriber,
        *,
        pages: int,
        memory_pages: int = 0,
        page_size: int = 16,
        chunk: int = 256,
        exact: bool = False,
        dtype: torch.dtype | None = None,
    ) -> None:
        if chunk % page_size:
            raise ValueError(f"chunk must be a multiple of page_size, got {chunk} and {page_size}")
        self.decoder = PagedDecoder(
            model, pages=pages, memory_pages=memory_pages, page_size=page_size, dtype=dtype
        )
        self.scheduler = Scheduler(self.decoder, chunk=chunk, exact=exact)
        self.exact, self._submitted = exact, 0

    @property
    def busy(self) -> bool:
        """Whether any request is unfinished."""
        return bool(self.scheduler.waiting or self.scheduler.running)

    def submit(self, request: GenerationRequest) -> int:
        """Take a request; returns its number. It is refused if it could never fit."""
        if (request.source is None) != (self.decoder.sources is None):
            raise ValueError("an encoder-decoder needs a source with every request, others none")
        limit, room = request.decode.max_length, self.decoder.positions
        if room is not None:
            limit = min(limit, room - len(request.prompt) + 1)
        if limit < 1:
            raise GlassformerError(
                f"the prompt has {len(request.prompt)} tokens and the model {room} positions, "
                f"which leaves none for an answer; shorten it"
            )
        self._submitted += 1
        generation = Generation.of(request, self._submitted, limit)
        if not self.scheduler.fits(generation):
            raise GlassformerError(
                f"the request could need {generation.most_tokens} tokens of memory, more than the "
                f"engine has; lower decode.max_length, shorten the prompt, or give it more pages"
            )
        self.scheduler.waiting.append(generation)
        return generation.number

    def cancel(self, number: int) -> None:
        """Forget a request; its pages are free at once. A finished one is left alone."""
        self.scheduler.cancel(number)

    def step(self) -> list[Progress]:
        """Read a token of each running request and some of the prompts that come in."""
        single, chunks = self.scheduler.plan()
        found = self._advance([(one, 1) for one in single])
        return found + self._advance(chunks)

    def answers(self, requests: Iterable[GenerationRequest]) -> list[Hypothesis | None]:
        """The answers to all of these, in order."""
        numbers = [self.submit(request) for request in requests]
        found: dict[int, Hypothesis | None] = {}
        while self.busy:
            found |= {done.number: done.answer for done in self.step() if done.finished}
        return [found[number] for number in numbers]

    def _advance(self, readings: list[Reading]) -> list[Progress]:
        """Read tokens, and choose the next one of those that have none left to read."""
        if not readings:
            return []
        generations = [generation for generation, _ in readings]
        scores = self._read(readings)
        complete = [row for row, one in enumerate(generations) if not one.unread]
        if not complete:
            return []
        ready = [generations[row] for row in complete]
        for generation in ready:
            if not generation.scores:
                self.scheduler.began(generation)
        chosen = choose(scores[torch.tensor(complete, device=scores.device)], ready)
        return [self._added(one, *what) for one, what in zip(ready, chosen, strict=True)]

    def _read(self, readings: list[Reading]) -> Float[Tensor, "B V"]:
        if self.exact:
            return torch.cat([self.decoder.read([one], [count]) for one, count in readings])
        generations, counts = zip(*readings, strict=True)
        return self.decoder.read(generations, counts)

    def _added(
        self,
        generation: Generation,
        token: int,
        score: float,
        alternatives: tuple[tuple[int, float], ...],
    ) -> Progress:
        generation.add(token, score, alternatives)
        if generation.finished:
            self.scheduler.finish(generation)
        return Progress(generation.number, token, generation.finished, generation.answer())
