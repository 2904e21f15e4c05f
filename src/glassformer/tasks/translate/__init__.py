"""translate: sequences to sequences: sentences, dates, words to phonemes.

job                  the job
about                its name, summary and options
settings             its settings and defaults; suited: batches that suit its pairs, on a GPU
data                 the schema
checks/              what the doctor looks for
tokens               the tokenizers of both sides; tags of target languages
batch                pairs as a model reads them
sequences            texts for sequences of numbers, for a frontend of one's own
back_translation     target texts, with sources that another run generates
task                 what training needs
writing              generation of translations
predictor            translations of new texts
explainer            what each word of a translation is based on
answers              translations of many rows, and their scores
reporter             the report; sections: its tables
translation_memory   the baseline; stored_memory keeps it in a run and answers with it
"""
