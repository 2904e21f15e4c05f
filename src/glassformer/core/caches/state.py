"""StateCache: for layers that keep a state of one size instead of keys (linear attention, GRU)."""

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches.base import Cache, placed_after, refuse_other_batch
from glassformer.core.layout import Layout

State = Float[Tensor, "..."]


class StateCache(Cache):
    """The state after what was read so far, of one size however long the rows become.

    Starts empty, for a batch of any size; from the first call on, for that batch. Gradients pass.

    Attributes:
        row_axis: Where the rows of the batch lie in it.
        fixed: Whether a new state is written over the old one, so that a step can be captured; then
            the caller says where tokens stand.
    """

    row_axis = 0
    fixed = False

    def __init__(self) -> None:
        self.state: State | None = None
        self._lengths: Int[Tensor, " B"] | None = None  # None where all have `_longest`
        self._longest = 0

    def place(self, layout: Layout) -> Layout:
        if self.before(layout) is None or layout.starts is not None:
            return layout
        if self.fixed:
            raise ValueError(
                f"a fixed {type(self).__name__} counts no tokens; give it a layout that is placed"
            )
        return placed_after(layout, self._lengths, self._longest)

    def before(self, layout: Layout) -> State | None:
        """The state before these tokens; None at the beginning."""
        if self.state is not None:
            refuse_other_batch(self.state.shape[self.row_axis], layout)
        return self.state

    def hold(self, state: State, layout: Layout) -> None:
        """Hold the state after these tokens (their layout placed), not the one before."""
        if not self.fixed:
            alike = layout.is_full and layout.starts is None
            self._lengths = None if alike else layout.ends
            self._longest = layout.reach
        self._put(state)

    def choose(self, rows: Int[Tensor, " chosen"]) -> None:
        """Go on with these rows, in this order; one may go on several times."""
        if self.state is not None:
            self._put(self.state.index_select(self.row_axis, rows))
        if self._lengths is not None and not self.fixed:
            self._lengths = self._lengths[rows]

    def _put(self, state: State) -> None:
        if self.fixed and self.state is not None and self.state.shape == state.shape:
            self.state.copy_(state)
        else:
            self.state = state
