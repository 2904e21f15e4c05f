"""Steps: every request whose prompt was read gets its next token, all of them in one call.

GatheredSteps   keys and values are gathered from their pages in every step    the one to read
RowSteps        they lie end to end while a request is worked on                CPU (`rows`)
PagedSteps      a kernel reads the pages, and a CUDA graph launches it          CUDA (`paged_steps`)
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.engine.generation import Branch
from glassformer.engine.paged_decoder import PagedDecoder


class Steps(ABC):
    """The requests that get a token in every step.

    Attributes:
        late: How many steps may be started before the tokens of the first are known.
    """

    late = 0

    def __init__(self, decoder: PagedDecoder) -> None:
        self.decoder = decoder
        self.members: dict[int, Branch] = {}

    def join(self, branches: Sequence[Branch], tokens: Int[Tensor, " B"]) -> None:
        """Requests whose prompts were read, with their first tokens."""
        self.members |= {one.number: one for one in branches}

    def leave(self, branch: Branch) -> None:
        """A request that is finished or cancelled."""
        self.members.pop(branch.number, None)

    def due(self) -> list[Branch]:
        """Those that want another token."""
        return [one for one in self.members.values() if one.chosen < one.limit]

    @abstractmethod
    def scores(self, due: Sequence[Branch]) -> Float[Tensor, "B V"]:
        """Scores of their next tokens."""

    def put(self, due: Sequence[Branch], tokens: Int[Tensor, " B"]) -> None:
        """The tokens that were chosen, -1 for none, while the host does not know them."""
        return


class BranchingSteps(Steps):
    """Steps that a search can lead along branches."""

    @abstractmethod
    def reorder(self, branches: Sequence[Branch], parents: Sequence[int]) -> None:
        """Have each of these continue another of them, given by its place; all are as long."""


class GatheredSteps(BranchingSteps):
    """Reads the newest tokens as it reads prompts.

    Args:
        exact: Whether each request is computed by itself.
    """

    def __init__(self, decoder: PagedDecoder, *, exact: bool) -> None:
        super().__init__(decoder)
        self.exact = exact

    def scores(self, due: Sequence[Branch]) -> Float[Tensor, "B V"]:
        return self.decoder.read(due, [1] * len(due), exact=self.exact)

    def reorder(self, branches: Sequence[Branch], parents: Sequence[int]) -> None:
        pool = self.decoder.pool
        moved = [
            (one, parent)
            for at, (one, parent) in enumerate(zip(branches, parents, strict=True))
            if at != parent
        ]
        pasts = [pool.load(branches[parent].sequence) for _, parent in moved]
        for (one, _), past in zip(moved, pasts, strict=True):
            pool.rewrite(one.sequence, *past)
