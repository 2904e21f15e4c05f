"""What several jobs share.

text         texts as tokens
batches      batches of them, padded, packed, or filled up to a shape
losses       cross-entropy over a vocabulary, and how far two answers are apart
ngrams       texts as counts of their n-grams
ngram_model  a language model of tokens, by Kneser-Ney
options      options of `predict` that mean the same in several jobs
generation   what those of answers that are generated token by token do
targets      what is explained of a text that was written
recordings   what is known of a recording once it was read
labels       labels, and how rows spell them; label_task learns them, label_reporter scores them
sound        features of recordings, in batches; sound_store keeps them on disk
"""
