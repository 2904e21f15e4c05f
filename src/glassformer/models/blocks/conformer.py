"""The Conformer block: attention, then convolution. Gulati et al., 2020."""

from functools import partial

from glassformer.config import StackConfig
from glassformer.core.caches import Cache, Memory
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.positions import Position
from glassformer.core.shapes import Vectors
from glassformer.models.blocks.base import Block, attention_of, feedforward_of, norm_of, residual_of
from glassformer.models.blocks.convolution import ConvolutionModule, check_call, check_settings


class ConformerBlock(Block):
    """Attention and convolution between two half-weighted feed-forward networks; then a norm.

        x = x + ½ first(x);  x = x + attention(x);  x = x + convolution(x);  norm(x + ½ last(x))

    Each part starts with its own norm (order `pre`, the only one). The paper's feed-forward
    networks are of kind `silu`; here the settings decide.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        check_settings(type(self).__name__, config, memory_dim)
        self.width = config.convolution.width
        self.first_feedforward = feedforward_of(config)
        self.first_residual = residual_of(config, weight=0.5)
        self.attention, self.attention_residual = attention_of(config), residual_of(config)
        self.convolution = ConvolutionModule(
            config.dim, width=self.width, norm=partial(norm_of, config.convolution.norm)
        )
        self.convolution_residual = residual_of(config)
        self.last_feedforward = feedforward_of(config)
        self.last_residual = residual_of(config, weight=0.5)
        self.norm = norm_of(config.norm, config.dim)

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        mask: Mask,
        position: Position | None = None,
        cache: Cache | None = None,
        memory: Memory | None = None,
    ) -> Vectors:
        """The vectors after this block, in the same layout."""
        check_call(type(self).__name__, self.width, mask, cache, memory)
        attention = partial(
            self.attention, mask=mask, position=position, cache=cache, layout=layout
        )
        convolution = partial(self.convolution, layout=layout, mask=mask, cache=cache)
        x = self.first_residual(x, self.first_feedforward, layout)
        x = self.attention_residual(x, attention, layout)
        x = self.convolution_residual(x, convolution, layout)
        x = self.last_residual(x, self.last_feedforward, layout)
        return self.norm(x, layout)
