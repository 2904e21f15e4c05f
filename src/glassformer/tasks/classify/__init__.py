"""classify: one or more labels for a text or a recording.

job              the job
about            its name, summary and options
settings         its settings and defaults; suited: those that suit its texts, on a CPU
data             the schema
checks/          what the doctor looks for
texts, sounds    what is read, as numbers; the labels are those of `shared`
sequences        the same for a frontend of one's own
long_texts       ways to read texts that are longer than the model's input
spelling         how words are written in the characters of a tokenizer
word_vectors     vectors of words from the words around them, without training
pretraining      masked words in the same texts, learned first
unlabelled       texts without labels in training
blend            n-grams as a second part of the model
mended           which rows one part mends for another
task             what training needs
linear           linear models over counts of n-grams
ngram_baseline   the baseline: n-grams and a linear model; stored_baseline keeps it in a run
votes            the baseline for recordings: the most similar ones vote
predictor        labels of new texts and recordings
contributions    what each part of a model contributed to a prediction
explainer        what speaks for each label; sound_explainer: which stretches of sound
reporter         the report
"""
