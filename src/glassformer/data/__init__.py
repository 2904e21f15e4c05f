"""From raw files to batches: each step takes what the one before it made, and only that.

    file -> sources: rows, streamed -> schema: samples -> splitter: splits -> batches

A row knows its file and its number all the way, so that every complaint can name both. What a
sample is, a job's Schema says; nothing here knows which job it is. In the order to read them:

rows, sources/      raw files as rows of columns
catalog/            data with a name
columns, schema     which column plays which role; what a job's samples are
splits, splitter    which split each belongs to
samples, ingest     all samples of a run, from raw files to memory-mapped ones
text/               tokens
jagged, ragged      rows of numbers of different lengths, in memory and on disk
batches             which rows go together
doctor/             what is wrong with data
"""
