"""Checks of labels.

labels   how many rows each has, how they are spelt, and in which order they come
leaks    what gives the label away: words of the text, and other columns
words    the words
columns  the columns
"""
