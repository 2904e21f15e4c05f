"""classify: one or more labels for a text or a recording.

job              the job
texts, sounds    what is read, as numbers; the labels are those of `shared`
long_texts       ways to read texts that are longer than the model's input
blend            n-grams as a second part of the model
ngram_baseline   the baseline: n-grams and a linear model
"""
