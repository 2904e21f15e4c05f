"""pretrain: predict masked words in raw text.

job        the job
about      its name, summary and options
settings   its settings and defaults
data       the schema
masking    which words are masked, and how
task       what training needs
predictor  words for the gaps of new texts
explainer  what each of them is based on
reporter   the report; there is no baseline
"""
