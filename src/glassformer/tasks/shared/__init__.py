"""What several jobs share.

text               texts as tokens; text_data: their schema; text_checks: what the doctor looks for
language_outliers  lines in another language than most; language_groups: two languages in one set
batches            batches of tokens, padded, packed, or filled up to a shape
losses             cross-entropy over a vocabulary, and how far two answers are apart
ngrams             which n-grams of texts are counted
ngram_counts       texts as such counts; ngram_spans: as spans of bytes; ngram_hashing: in buckets
ngram_model        a language model of tokens, by Kneser-Ney
options            options of `predict` that mean the same in several jobs
generation         what those of answers that are generated token by token do
written            tokens with their scores, and decoding settings as typed
targets            what is explained of a text that was written
labels             labels, and how rows spell them; label_checks: what the doctor looks for
label_inputs       what is read to predict them
label_task         learns them; label_answers: answers to many inputs
label_predictor    what predictors of them share; label_subject: what is explained of an input
label_reporter     scores them; label_sections: tables and charts of the report
recordings         what is known of a recording once it was read
sound              features of recordings, in batches; sound_store keeps them on disk
sound_data         their schema; sound_checks: what the doctor looks for
sound_settings     settings of jobs that read recordings
sound_predictor    predictors that take recordings
nearest            the most similar recordings, for baselines
image_data         the schema of images
sequences          sequences of numbers, for a frontend of one's own
reliability        how often answers like one are right, by validation rows
own_models         models of one's own, called as a job calls its model
lazy_details       details of a prediction, worked out when somebody looks at them
"""
