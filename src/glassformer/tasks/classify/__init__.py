"""classify: one label, or several, for a text.

job          the job
labels       the names, and how rows say them
long_texts   ways to read what is longer than the model reads
answers      what it predicts for many rows, with scores
sections     what its report shows besides
ngram_baseline   the honest baseline: n-grams and a linear model
"""
