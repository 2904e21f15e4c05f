"""Methods of explanation. To add one, write a function of a Subject and list it in METHODS."""

from glassformer.explaining.methods.attention import attention, attention_x_gradient
from glassformer.explaining.methods.gradients import (
    STEPS,
    gradient_norm,
    gradient_x_input,
    integrated_gradients,
)
from glassformer.explaining.methods.method import Influence as Influence, Method as Method
from glassformer.explaining.methods.occlusion import SPAN, occlusion, occlusion_of_spans
from glassformer.explaining.methods.rollout import rollout

METHODS: dict[str, Method] = {
    "attention": Method(influence=attention, passes=lambda pieces: 1),
    "rollout": Method(influence=rollout, passes=lambda pieces: 1),
    "attention_x_gradient": Method(influence=attention_x_gradient, passes=lambda pieces: 3),
    "gradient_norm": Method(influence=gradient_norm, passes=lambda pieces: 3),
    "gradient_x_input": Method(influence=gradient_x_input, passes=lambda pieces: 3),
    "integrated_gradients": Method(influence=integrated_gradients, passes=lambda pieces: 3 * STEPS),
    "occlusion": Method(influence=occlusion, passes=lambda pieces: pieces),
    "occlusion_of_spans": Method(influence=occlusion_of_spans, passes=lambda pieces: pieces + SPAN),
}
