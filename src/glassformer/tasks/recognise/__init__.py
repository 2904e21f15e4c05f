"""recognise: one or more labels for an image, read as patches. Dosovitskiy et al., "ViT", 2020.

job              the job; the labels are those of `shared`
about            its name, summary and options
settings         its settings and defaults
data             the schema
checks           what the doctor looks for
images           what is read: pixels at one size, changed while training
task             what training needs
pixel_baseline   the baseline: a logistic regression on pixels
predictor        labels of new images
explainer        what speaks for a label, patch by patch
reporter         the report
"""
