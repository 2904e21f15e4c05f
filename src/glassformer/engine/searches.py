"""The searches that an engine works on."""

from collections.abc import Iterator, Sequence

from jaxtyping import Float
from torch import Tensor

from glassformer.core.caches.paged import to_device
from glassformer.decode.no_answer import no_answer
from glassformer.engine.progress import Progress, failed
from glassformer.engine.scheduler import Scheduler
from glassformer.engine.searching import Finished, SearchBranch, Searching
from glassformer.engine.steps import BranchingSteps, Steps
from glassformer.errors import GlassformerError


class Searches:
    """Begins and ends searches, and takes their steps."""

    def __init__(self, scheduler: Scheduler, steps: Steps) -> None:
        self.scheduler, self.steps = scheduler, steps
        self._running: list[Searching] = []

    @property
    def running(self) -> list[Searching]:
        """Those that are not finished."""
        self._running = [one for one in self._running if one.firsts]
        return self._running

    def begin(
        self, firsts: Sequence[SearchBranch], scores: Float[Tensor, "searches V"]
    ) -> list[Progress]:
        """Begin searches together; if something is wrong with one of them, each by itself."""
        try:
            searching = Searching(firsts, scores.device)
            every = scores.repeat_interleave(firsts[0].request.width, 0)
            finished, _ = searching.advance(every)
        except GlassformerError as error:
            if len(firsts) > 1:
                apart = (self.begin([one], scores[[row]]) for row, one in enumerate(firsts))
                return [progress for found in apart for progress in found]
            self.end(firsts[0])
            return [failed(firsts[0].number, error)]
        self._running.append(searching)
        if searching.firsts:
            tokens = [one.tokens[-1] for one in searching.branches]
            self.steps.join(searching.branches, to_device(tokens, scores.device))
        return list(map(self._ended, finished))

    def advance(
        self, searching: Searching, scores: Float[Tensor, "branches V"]
    ) -> Iterator[Progress]:
        """A step of searches that go on together."""
        finished, parents = searching.advance(scores)
        yield from map(self._ended, finished)
        if searching.firsts:
            assert isinstance(self.steps, BranchingSteps)  # or no search would have been accepted
            self.steps.reorder(searching.branches, parents)

    def end(self, first: SearchBranch) -> None:
        """Free what a search has taken."""
        for one in first.every:
            one.cancelled = True
            self.steps.leave(one)
        if first.searching is not None:
            first.searching.leave(first)
        self.scheduler.cancel(first.number)

    def _ended(self, found: Finished) -> Progress:
        number = found.first.number
        self.end(found.first)
        if not found.answers:
            return failed(number, no_answer(is_nan=found.is_nan))
        best, *others = found.answers
        return Progress(number, -1, finished=True, answer=best, others=tuple(others))
