"""Blocks, by the name a configuration uses. To add one, write a `Block` and list it in BLOCKS."""

from glassformer.models.blocks.base import Block
from glassformer.models.blocks.transformer import TransformerBlock

__all__ = ["BLOCKS", "Block", "TransformerBlock"]

BLOCKS: dict[str, type[Block]] = {
    "transformer": TransformerBlock,
}
