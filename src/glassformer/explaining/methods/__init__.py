"""Methods of explanation. To add one, write a function of a Subject and list it in METHODS."""

from glassformer.explaining.methods.gradients import gradient_x_input
from glassformer.explaining.methods.method import Influence as Influence, Method as Method
from glassformer.explaining.methods.occlusion import SPAN, occlusion, occlusion_of_spans

METHODS: dict[str, Method] = {
    "gradient_x_input": Method(influence=gradient_x_input, passes=lambda pieces: 3),
    "occlusion": Method(influence=occlusion, passes=lambda pieces: pieces + 1),
    "occlusion_of_spans": Method(influence=occlusion_of_spans, passes=lambda pieces: pieces + SPAN),
}
