"""From raw files to batches: each step takes what the one before it made, and only that.

    file -> sources: rows, streamed -> columns: which is the text -> splits: which part -> batches

A row knows its file and its number all the way, so that every complaint can name both.
"""
