"""The name, summary and options of `recognise`."""

from glassformer.tasks.about import About, wish
from glassformer.tasks.shared.options import ALTERNATIVES

ABOUT = About(
    name="recognise",
    summary="Predict one or more labels for an image.",
    job="glassformer.tasks.recognise.job:JOB",
    options=(ALTERNATIVES,),
    wishes=wish("recognize, recognition, image, images, image classification, picture, vision")
    | wish(
        "ocr, handwriting",
        "no job reads lines of text in images; `recognise` gives one label to an image, such as "
        "that of a single character",
    )
    | wish(
        "detect, detection, object detection, segmentation, image segmentation",
        "no job marks places in images; `recognise` gives one label to an image, so cut out what "
        "is to be labelled",
    ),
)
