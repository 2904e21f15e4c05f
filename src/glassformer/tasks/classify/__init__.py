"""classify: one or more labels for a text.

job              the job
labels           the labels, and how rows spell them
long_texts       ways to read texts that are longer than the model's input
answers          predictions for many rows, and their scores
sections         the tables of its report
ngram_baseline   the baseline: n-grams and a linear model
"""
