"""N-grams: the weights of the linear model that the run keeps beside its own.

They say what the words mean on average, in any text, whatever the model makes of them in this one.
"""

from glassformer.errors import GlassformerError
from glassformer.explaining.methods.method import Influence
from glassformer.explaining.subject import Subject


def ngrams(subject: Subject) -> Influence:
    """What the n-grams of each piece add to the scores, shared among the pieces of an n-gram."""
    found = subject.ngram_influence()
    if found is None:
        raise GlassformerError(
            "this run keeps no n-gram baseline to explain by; choose another method"
        )
    return found
