"""Jobs, one folder each: what a person's data is, which model learns it, and how good it is.

classify    one label, or several, for a text
pretrain    fill gaps in raw text
translate   sequences to sequences: sentences, dates, words to sounds
"""

from typing import Any

from glassformer.tasks.classify import Classify
from glassformer.tasks.job import Job
from glassformer.tasks.pretrain import Pretrain
from glassformer.tasks.translate import Translate

JOBS: dict[str, type[Job[Any, Any, Any]]] = {
    "classify": Classify,
    "pretrain": Pretrain,
    "translate": Translate,
}
