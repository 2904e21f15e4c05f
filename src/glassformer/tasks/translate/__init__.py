"""translate: sequences to sequences: sentences, dates, words to sounds.

job        the job
settings   its settings, and those it starts from
tokens     how both sides fall into tokens; tags of target languages
batch      pairs as a model reads them
writing    from scores to texts
answers    what it wrote to many rows, with scores
remarks    what a person should know of the pairs
sections   what its report shows besides scores
translation_memory   the honest baseline
"""
