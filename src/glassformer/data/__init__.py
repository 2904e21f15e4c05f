"""From raw files to batches: each step uses only the output of the one before it.

    file -> sources: rows, streamed -> schema: samples -> splitter: splits -> batches

A row carries its file and row number throughout, so that every error can name both. A job's Schema
defines what a sample is; nothing here knows which job it is. In reading order:

rows, sources/      raw files as rows of columns
in_memory           rows given in Python
catalog/            named data sets
columns, schema     which column plays which role; what a job's samples are
splits, splitter    which split each belongs to
samples, ingest     all samples of a run, from raw files to memory-mapped ones
spool               texts that were just written, to be read a few times
text/               tokens
audio/              recordings, and their features
images/             pictures, and what training changes in them
paths               files that hold one sample each
jagged, ragged      rows of different lengths, in memory and on disk
shards, arrays      tokens of many texts in several files; memory-mapped files
batches             which rows form a batch
doctor/             problems in the data
"""
