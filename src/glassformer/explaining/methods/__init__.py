"""Methods of explanation. To add one, write a function of a Subject and list it in METHODS."""

from glassformer.explaining.methods.attention import (
    attention,
    attention_x_gradient,
    reading_layers,
)
from glassformer.explaining.methods.gradients import (
    STEPS,
    gradient_norm,
    gradient_x_input,
    integrated_gradients,
)
from glassformer.explaining.methods.method import Influence as Influence, Method as Method
from glassformer.explaining.methods.ngrams import ngrams
from glassformer.explaining.methods.occlusion import SPAN, occlusion, occlusion_of_spans
from glassformer.explaining.methods.rollout import rollout
from glassformer.explaining.subject import Subject

METHODS: dict[str, Method] = {
    "attention": Method(influence=attention, passes=lambda pieces: 1, attends=True, signed=False),
    "rollout": Method(influence=rollout, passes=lambda pieces: 1, attends=True, signed=False),
    "attention_x_gradient": Method(
        influence=attention_x_gradient, passes=lambda pieces: 3, attends=True
    ),
    "gradient_norm": Method(influence=gradient_norm, passes=lambda pieces: 3, signed=False),
    "gradient_x_input": Method(influence=gradient_x_input, passes=lambda pieces: 3),
    "integrated_gradients": Method(influence=integrated_gradients, passes=lambda pieces: 3 * STEPS),
    "ngrams": Method(influence=ngrams, passes=lambda pieces: 0, inside=False),
    "occlusion": Method(influence=occlusion, passes=lambda pieces: pieces, inside=False),
    "occlusion_of_spans": Method(
        influence=occlusion_of_spans, passes=lambda pieces: pieces + SPAN, inside=False
    ),
}


def usable_methods(subject: Subject) -> list[str]:
    """The methods that work for this model, and explain what it answers by."""
    attends = subject.readers is not None and bool(reading_layers(subject.model))
    without = set() if subject.ngram_influence() is not None else {"ngrams"}
    return [
        name
        for name, method in METHODS.items()
        if name not in without
        and (attends or not method.attends)
        and not (method.inside and subject.by_ngrams_alone)
    ]
