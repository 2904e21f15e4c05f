"""Checks of pairs of texts.

pairs              copied sources, tags, two Chinese scripts; a check for each target language
lengths            pairs of unusual length ratio, and stretches that are misaligned
languages          lines in another language than the rest of their side
"""
