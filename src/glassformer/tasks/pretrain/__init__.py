"""pretrain: fill gaps in raw text.

job       the job
masking   which words are hidden, and behind what
"""

from glassformer.tasks.pretrain.job import Pretrain

__all__ = ["Pretrain"]
