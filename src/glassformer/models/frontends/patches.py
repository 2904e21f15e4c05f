"""Images: split into square patches, one vector each. Dosovitskiy et al., "ViT", 2020."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.positions.absolute import waves
from glassformer.core.shapes import Vectors
from glassformer.errors import unknown

POSITION_KINDS = ("learned", "sinusoidal")


class Patches(nn.Module):
    """Patches from left to right and top to bottom, each with its position added.

        vector = W patch + b + position[row, column]

    Positions are added here, where rows and columns are known; give the stack position "none", or
    one that encodes the reading order as well.

    Args:
        channels: Channels of the images; 3 for RGB.
        size: Side of a patch, in pixels.
        image: Height and width of the images, in pixels.
        first: Whether a learned vector comes before the patches, to summarise them.
        position: `learned`, a vector for every patch; or `sinusoidal`, in which half of the
            channels encode the row and half the column.
    """

    no_weight_decay = ("table",)
    table: Float[Tensor, "patches D"]

    def __init__(
        self,
        channels: int,
        dim: int,
        *,
        size: int,
        image: tuple[int, int],
        first: bool = False,
        position: str = "learned",
    ) -> None:
        super().__init__()
        if image[0] % size or image[1] % size:
            raise ValueError(
                f"an image of {image[0]} x {image[1]} pixels does not divide into patches of "
                f"{size} x {size}; resize the images, or change the size of the patches"
            )
        if position not in POSITION_KINDS:
            raise ValueError(unknown("position", position, POSITION_KINDS))
        self.dim, self.image = dim, image
        self.to_vector = nn.Conv2d(channels, dim, size, stride=size)
        self.first = nn.Parameter(0.02 * torch.randn(dim)) if first else None
        rows, columns = image[0] // size, image[1] // size
        if position == "learned":
            self.table = nn.Parameter(0.02 * torch.randn(rows * columns, dim))
        else:
            self.register_buffer("table", grid_encoding(rows, columns, dim), persistent=False)

    def forward(
        self, images: Float[Tensor, "B channels height width"], layout: Layout | None = None
    ) -> tuple[Vectors, Layout]:
        """Vectors and their full layout. All images have one size, so `layout` is not needed."""
        if tuple(images.shape[2:]) != self.image:
            raise ValueError(
                f"images have {images.shape[2]} x {images.shape[3]} pixels, but the frontend was "
                f"made for {self.image[0]} x {self.image[1]}; resize them"
            )
        x = self.to_vector(images).flatten(2).mT + self.table  # (B, T, D)
        if self.first is not None:
            x = torch.cat([self.first.expand(len(x), 1, -1), x], dim=1)  # (B, 1 + T, D)
        return x, Layout.full(x.shape[0], x.shape[1], x.device)


def grid_encoding(rows: int, columns: int, dim: int) -> Float[Tensor, "patches dim"]:
    """The sinusoidal encoding of every row, concatenated with that of every column."""
    down = waves(torch.arange(rows), dim // 2)[:, None]
    across = waves(torch.arange(columns), dim - dim // 2)[None]
    grid = [part.expand(rows, columns, -1) for part in (down, across)]
    return torch.cat(grid, dim=-1).flatten(0, 1)
