"""generate: continue texts, by a language model.

job             the job
about           its name, summary and options
settings        its settings and defaults
documents       text files as documents, in sections
data            the schema
checks          what the doctor looks for
stream          documents end to end, as tokens
windows         what is trained on, and what slides over a text to score it
batch           windows as a model reads them
task            what training needs
answers         likelihoods of texts, and their scores
unknown         characters without a token: their bytes, and remarks about them
predictor       continuations of prompts
streaming       text as it is generated: written as soon as it cannot change
explainer       what each token of a continuation is based on
ngram_baseline  the baseline
reporter        the report
"""
