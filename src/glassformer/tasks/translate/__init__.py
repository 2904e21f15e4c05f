"""translate: sequences to sequences: sentences, dates, words to phonemes.

job                  the job
settings             its settings and defaults
tokens               the tokenizers of both sides; tags of target languages
batch                pairs as a model reads them
writing              generation of translations
explainer            what each word of a translation is based on
answers              translations of many rows, and their scores
sections             the tables of its report
translation_memory   the baseline; stored_memory keeps it in a run and answers with it
"""
