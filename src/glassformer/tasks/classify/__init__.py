"""classify: one label, or several, for a text.

job          the job
labels       the names, and how rows say them
long_texts   ways to read what is longer than the model reads
answers      what it said to many rows, with scores
"""

from glassformer.tasks.classify.job import Classify, ClassifyConfig

__all__ = ["Classify", "ClassifyConfig"]
