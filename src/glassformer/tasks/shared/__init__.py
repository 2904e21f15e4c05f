"""What several jobs share.

text         texts as tokens, and batches of them
generation   how answers that are written token by token are generated
"""
