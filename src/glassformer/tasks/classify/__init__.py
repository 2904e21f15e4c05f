"""classify: one or more labels for a text or a recording.

job              the job
labels           the labels, and how rows spell them
inputs           what is read, as numbers: texts or sounds
long_texts       ways to read texts that are longer than the model's input
answers          predictions for many rows, and their scores
sections         the tables of its report
ngram_baseline   the baseline: n-grams and a linear model
"""
