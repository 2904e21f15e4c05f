"""Checks of what is labelled.

leaks    what gives the label away: words of the text, and other columns
words    the words
columns  the columns
kinds    texts or recordings
"""
