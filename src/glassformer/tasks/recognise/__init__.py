"""recognise: one or more labels for an image, read as patches. Dosovitskiy et al., "ViT", 2020.

job              the job; the labels are those of `shared`
images           what is read: pixels at one size, changed while training
pixel_baseline   the baseline: a logistic regression on pixels
explainer        what speaks for a label, patch by patch
"""
