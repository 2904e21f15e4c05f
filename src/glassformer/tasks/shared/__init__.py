"""What several jobs share.

text         texts as tokens, and batches of them
ngrams       texts as counts of their n-grams
generation   options of answers that are generated token by token
"""
