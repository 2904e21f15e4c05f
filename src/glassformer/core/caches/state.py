"""StateCache: for layers with a state of fixed size instead of keys (linear attention, GRU)."""

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches.base import Cache, placed_after, refuse_other_batch
from glassformer.core.layout import Layout

State = Float[Tensor, "..."]


class StateCache(Cache):
    """The state after the tokens so far, of fixed size however long the rows become.

    Starts empty, for a batch of any size; from the first call on, it belongs to that batch.
    Gradients pass through.

    Attributes:
        row_axis: The axis of the state that holds the rows of the batch.
        fixed: Whether a new state overwrites the old one, so that a step can be captured as a
            graph; the caller then provides the positions.
    """

    row_axis = 0
    fixed = False

    def __init__(self) -> None:
        self.state: State | None = None
        self._lengths: Int[Tensor, " B"] | None = None  # None if all have `_longest`
        self._longest = 0

    def place(self, layout: Layout) -> Layout:
        if self.before(layout) is None or layout.starts is not None:
            return layout
        if self.fixed:
            raise ValueError(
                f"a fixed {type(self).__name__} counts no tokens; pass a layout with its positions"
            )
        return placed_after(layout, self._lengths, self._longest)

    def before(self, layout: Layout) -> State | None:
        """The state before these tokens; None at the beginning."""
        if self.state is not None:
            refuse_other_batch(self.state.shape[self.row_axis], layout)
        return self.state

    def hold(self, state: State, layout: Layout) -> None:
        """Replace the state with the one after these tokens, given their placed layout."""
        if not self.fixed:
            even = layout.is_full and layout.starts is None
            self._lengths = None if even else layout.ends
            self._longest = layout.reach
        self._put(state)

    def choose(self, rows: Int[Tensor, " chosen"]) -> None:
        """Continue with these rows, in this order; a row may be repeated."""
        if self.state is not None:
            self._put(self.state.index_select(self.row_axis, rows))
        if self._lengths is not None and not self.fixed:
            self._lengths = self._lengths[rows]

    def _put(self, state: State) -> None:
        if self.fixed and self.state is not None and self.state.shape == state.shape:
            self.state.copy_(state)
        else:
            self.state = state
