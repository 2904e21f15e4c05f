"""Engine: answers many requests at once, a token of each in every step."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import is_

from jaxtyping import Float
from torch import Tensor

from glassformer.core.caches.paged import to_device
from glassformer.decode.paths import Hypothesis
from glassformer.engine.generation import Branch, Generation, GenerationRequest
from glassformer.engine.paged_decoder import PagedDecoder
from glassformer.engine.paged_steps import PagedSteps, supports
from glassformer.engine.progress import Progress, failed
from glassformer.engine.rows import RowSteps
from glassformer.engine.sampling import Chooser, Chosen
from glassformer.engine.scheduler import Reading, Scheduler
from glassformer.engine.searches import Searches
from glassformer.engine.searching import SearchBranch, SearchRequest, branched, by_kind
from glassformer.engine.steps import GatheredSteps, Steps
from glassformer.errors import GlassformerError
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import LanguageModel, Transformer

CHUNK = {"cpu": 256, "cuda": 8192}  # tokens of prompts in a step


class Engine:
    """Requests come and go at every step; they share the model and a bounded memory.

    With a language model it is greedy or samples; searches with beams are for models with a source
    (`SearchRequest`). `glassformer.decode` has them for language models.

        engine = Engine(model, pages=1024)
        number = engine.submit(GenerationRequest(prompt=(1, 5, 9)))
        while engine.busy:
            for progress in engine.step():
                ...

    Args:
        model: A language model, or an encoder-decoder, in evaluation mode.
        pages: The memory for tokens.
        memory_pages: That for encoded sources, as much by default; a language model has none.
        page_size: Tokens in a page.
        rows: The most requests to work on at a time.
        chunk: The most tokens of prompts to read in a step while others wait for a token, and an
            eighth of what is read while none does; by default, what suits the device.
        exact: Whether an answer is the same to the last bit whatever runs beside it: each request
            is then computed by itself, which is slower.
    """

    def __init__(
        self,
        model: LanguageModel | Transformer | Transcriber,
        *,
        pages: int,
        memory_pages: int | None = None,
        page_size: int = 16,
        rows: int = 256,
        chunk: int | None = None,
        exact: bool = False,
    ) -> None:
        memory_pages = pages if memory_pages is None else memory_pages
        self.decoder = PagedDecoder(
            model, pages=pages, memory_pages=memory_pages, page_size=page_size
        )
        if chunk is None:
            whole = CHUNK.get(self.decoder.device.type, CHUNK["cpu"])
            chunk = max(page_size, whole // page_size * page_size)
        if chunk % page_size:
            raise ValueError(f"chunk must be a multiple of page_size, got {chunk} and {page_size}")
        self.scheduler = Scheduler(self.decoder, rows=rows, chunk=chunk, exact=exact)
        self.steps = steps_for(self.decoder, rows=rows, exact=exact)
        self.chooser = Chooser(self.decoder.device)
        self.exact, self._submitted = exact, 0
        self._started: deque[list[Chosen]] = deque()  # steps whose tokens are not known yet
        self.searches = Searches(self.scheduler, self.steps)

    @property
    def busy(self) -> bool:
        """Whether any request is unfinished."""
        return bool(self.scheduler.waiting or self.scheduler.running)

    @property
    def due_tokens(self) -> int:
        """About how many tokens the next step reads."""
        return self.scheduler.due_tokens

    def submit(self, request: GenerationRequest | SearchRequest, owner: Hashable = None) -> int:
        """Take a request; returns its number. It is refused if it could never fit.

        Args:
            owner: Owners share the rows; the requests of one are first come, first served.
        """
        if (request.source is None) != (self.decoder.sources is None):
            raise ValueError("an encoder-decoder needs a source with every request, others none")
        size = self.decoder.tokens.table.num_embeddings
        if not all(0 <= token < size for token in request.prompt):
            raise ValueError(f"the prompt has a token that is not one of the model's {size:,}")
        room = self.decoder.positions
        limit = request.limit if isinstance(request, SearchRequest) else request.decode.max_length
        if room is not None:
            limit = min(limit, room - len(request.prompt) + 1)
        if limit < 1:
            raise GlassformerError(
                f"the prompt has {len(request.prompt)} tokens and the model {room} positions, "
                f"which leaves none for an answer; shorten it"
            )
        self._submitted += 1
        branch: Branch
        if isinstance(request, SearchRequest):
            branch = branched(self._submitted, request, limit, owner)
        else:
            branch = Generation(
                number=self._submitted,
                request=request,
                prompt=request.prompt,
                origin=request.source,
                limit=limit,
                settings=self.chooser.settings(request),
                tokens=[*request.prompt],
                owner=owner,
            )
        self.scheduler.refuse_too_large(branch)
        self.scheduler.add(branch)
        return branch.number

    def cancel(self, number: int) -> None:
        """Forget a request; its pages are free at once. A finished one is left alone."""
        running = self.scheduler.running.get(number)
        if isinstance(running, SearchBranch):
            self.searches.end(running)
        elif running is not None:
            running.cancelled = True
            self.steps.leave(running)
        self.scheduler.cancel(number)

    def forget(self) -> None:
        """Free the pages that finished requests have left for others that begin alike."""
        self.scheduler.drop_finished()

    def step(self) -> list[Progress]:
        """Choose a token of each running request and read some of the prompts that come in.

        On a GPU the tokens are those of the step before: nothing waits for the device.
        """
        reading = self.scheduler.plan(self._put_back)
        due = self.steps.due()
        started, found = list[Chosen](), [failed(*one) for one in self.scheduler.failed.items()]
        self.scheduler.failed.clear()
        if due:
            self._go_on(self.steps.scores(due), due, started, found)
        if reading:
            self._read(reading, started, found)
        if started:
            self._started.append(started)
        # Rules that look at the tokens before need to know them.
        running = self.scheduler.running.values()
        wait = (
            not started
            or self.scheduler.pressed
            or any(isinstance(one, Generation) and one.settings.by_history for one in running)
        )
        while len(self._started) > (0 if wait else self.steps.late):
            for choice in self._started.popleft():
                found += self._added(choice)
        return found

    def answers(
        self, requests: Iterable[GenerationRequest | SearchRequest], *, ahead: int | None = None
    ) -> Iterator[Hypothesis]:
        """The answers to all of these, the best of a search, in order.

        Where a request has none, its error is raised in its turn.

        Args:
            ahead: The most requests to take before the first of them is answered; by default, all.
                It begins with one and grows with every answer, so that the first one is quick.
        """
        rest, numbers = iter(requests), deque[int]()
        found: dict[int, Progress] = {}
        finished = 0
        try:
            while True:
                room = (
                    None if ahead is None else min(ahead, 1 + finished) + len(found) - len(numbers)
                )
                numbers += map(self.submit, islice(rest, room))
                if not numbers:
                    return
                done = {one.number: one for one in self.step() if one.finished}
                finished, found = finished + len(done), found | done
                while numbers and numbers[0] in found:
                    yield found.pop(numbers.popleft()).best()
        finally:
            for number in numbers:
                self.cancel(number)

    def _put_back(self, branch: Branch) -> None:
        """Have a running request wait again, and its rows go to others."""
        if isinstance(branch, SearchBranch):
            self.searches.end(branch)
            again = branched(branch.number, branch.request, branch.limit, branch.owner)
            self.scheduler.add(again, first=True)
        else:
            self.steps.leave(branch)
            self.scheduler.put_back(branch)

    def _go_on(
        self,
        scores: Float[Tensor, "B V"],
        due: Sequence[Branch],
        started: list[Chosen],
        found: list[Progress],
    ) -> None:
        """Choose the next token of all that is being written."""
        row_of = {one.number: row for row, one in enumerate(due)}
        plain = [one for one in due if isinstance(one, Generation)]
        if plain:
            started.append(self._chosen(rows_of(scores, row_of, plain, due), plain))
        for searching in self.searches.running:
            found += self.searches.advance(
                searching, rows_of(scores, row_of, searching.branches, due)
            )

    def _read(
        self, reading: Sequence[Reading], started: list[Chosen], found: list[Progress]
    ) -> None:
        """Read prompts, and choose the first token of those that were read to their end."""
        branches, counts = zip(*reading, strict=True)
        scores = self.decoder.read(branches, counts, exact=self.exact)
        row_of = {one.number: row for row, one in enumerate(branches) if not one.unread}
        complete = [one for one in branches if not one.unread]
        for one in complete:
            self.scheduler.began(one)
        plain = [one for one in complete if isinstance(one, Generation)]
        if plain:
            scored = rows_of(scores, row_of, plain, branches)
            started.append(self._chosen(scored, plain, join=True))
        for alike in by_kind(one for one in complete if isinstance(one, SearchBranch)):
            found += self.searches.begin(alike, rows_of(scores, row_of, alike, branches))

    def _chosen(
        self, scores: Float[Tensor, "B V"], generations: Sequence[Generation], *, join: bool = False
    ) -> Chosen:
        """Choose the next token of each of these."""
        tokens, choice = self.chooser.choose(scores, generations)
        for one in generations:
            one.chosen += 1
        (self.steps.join if join else self.steps.put)(generations, tokens)
        return choice

    def _added(self, choice: Chosen) -> list[Progress]:
        """Add the tokens that were chosen, except to requests that had ended before."""
        found, ended = list[Progress](), list[Generation]()
        for generation, token, score, alternatives in choice.read():
            if generation.finished:
                continue
            generation.add(token, score, alternatives)
            last, answer = generation.finished, None
            if last:
                ended.append(generation)
                answer = generation.answer()
            known = score, alternatives, (), generation.error
            found.append(Progress(generation.number, token, last, answer, *known))
        for generation in reversed(ended):  # so that no row moves that is about to leave
            self.steps.leave(generation)
            self.scheduler.finish(generation)
        return found


def rows_of(
    scores: Float[Tensor, "B V"],
    row_of: Mapping[int, int],
    chosen: Sequence[Branch],
    every: Sequence[Branch],
) -> Float[Tensor, "chosen V"]:
    """The scores of some of the branches."""
    if len(chosen) == len(every) and all(map(is_, chosen, every)):
        return scores
    return scores[to_device([row_of[one.number] for one in chosen], scores.device)]


def steps_for(decoder: PagedDecoder, *, rows: int, exact: bool) -> Steps:
    """How the newest tokens are read on this device."""
    if decoder.device.type == "cpu" and not exact:
        return RowSteps(decoder)
    if not exact and supports(decoder):
        return PagedSteps(decoder, rows=rows)
    return GatheredSteps(decoder, exact=exact)
