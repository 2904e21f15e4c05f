"""Blocks, by the name a configuration uses.

To add one, write a `Block` and list it in BLOCKS and in `config.BLOCK_NAMES`.
"""

from glassformer.models.blocks.base import Block
from glassformer.models.blocks.branchformer import BranchformerBlock
from glassformer.models.blocks.conformer import ConformerBlock
from glassformer.models.blocks.e_branchformer import EBranchformerBlock
from glassformer.models.blocks.transformer import TransformerBlock

__all__ = [
    "BLOCKS",
    "Block",
    "BranchformerBlock",
    "ConformerBlock",
    "EBranchformerBlock",
    "TransformerBlock",
]

BLOCKS: dict[str, type[Block]] = {
    "transformer": TransformerBlock,
    "conformer": ConformerBlock,
    "branchformer": BranchformerBlock,
    "e-branchformer": EBranchformerBlock,
}
