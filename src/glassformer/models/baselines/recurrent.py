"""Recurrent encoders: bidirectional, one vector after another. What attention replaced.

GRU: Cho et al., 2014. LSTM: Hochreiter and Schmidhuber, 1997. Bidirectional: Schuster and Paliwal,
1997. They need no positions: they read the tokens in order.
"""

from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from glassformer.config import StackConfig, choose, require
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, everything
from glassformer.core.shapes import Vectors
from glassformer.models.baselines.rows import in_rows, in_the_form_of, refuse_other_mask, run_layers

CELLS: dict[str, type[nn.GRU] | type[nn.LSTM]] = {"gru": nn.GRU, "lstm": nn.LSTM}


class RecurrentEncoder(nn.Module):
    """Reads a whole sequence forwards and backwards, half of the width each.

    Dropout applies to the input and between layers. Rows of different lengths make it wait for a
    GPU once, since PyTorch needs the lengths on the CPU.
    """

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        choose("kind of recurrent encoder", config.kind, tuple(CELLS))
        require(
            config.dim % 2 == 0,
            f"a recurrent encoder reads in two directions, half of dim each: dim must be even, "
            f"got {config.dim}; use {config.dim + 1}",
        )
        self.dim, self.dropout = config.dim, Dropout(config.dropout)
        self.layers = CELLS[config.kind](
            config.dim,
            config.dim // 2,
            config.depth,
            batch_first=True,
            bidirectional=True,
            dropout=config.dropout if config.depth > 1 else 0.0,  # avoids PyTorch's warning
        )

    def forward(self, x: Vectors, *, layout: Layout, mask: Mask = everything) -> Vectors:
        """A vector for each position: half from the left, half from the right."""
        refuse_other_mask("a recurrent encoder", mask, everything)
        if not layout.longest:
            return x
        rows = self.dropout(in_rows(x, layout))
        if layout.is_full:
            return run_layers(self.layers, rows)[0]
        # PyTorch takes no empty rows: they are read as one zero vector, and the result is zeroed.
        lengths = layout.lengths.clamp(min=1).cpu()
        ragged = pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False)
        answers, _ = pad_packed_sequence(
            run_layers(self.layers, ragged)[0], batch_first=True, total_length=layout.longest
        )
        answers = answers.masked_fill((layout.lengths == 0)[:, None, None], 0.0)
        return in_the_form_of(layout, answers)
