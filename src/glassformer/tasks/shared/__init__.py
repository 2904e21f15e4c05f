"""What several jobs share.

text         texts as tokens, and batches of them
ngrams       texts as counts of their n-grams
generation   how answers that are written token by token are generated
"""
