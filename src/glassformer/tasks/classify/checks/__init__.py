"""Checks of labels.

labels   how many rows each has, and how they are spelt
leaks    what gives the label away: words of the text, and other columns
words    the words
columns  the columns
"""
