"""What can be wrong with pairs of texts.

pairs              copied sources, several targets; a check for each target language; the list
lengths            pairs of odd length, and stretches that are misaligned
languages          lines in another language than their side
language_outliers  those in a third language
scripts            two Chinese scripts on one side
"""
