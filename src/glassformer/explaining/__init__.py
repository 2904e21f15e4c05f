"""Explanations: what a model attends to.

Reading order:

watching            the attention weights of any model, whatever kernel runs
alignment           which source words each word of a translation attended to
alignment_terminal  the same in a terminal; `terminal` has its shades
alignment_picture   the same as a picture
hearing             what a transcriber makes of a sound: CTC posteriors and attention over time
hearing_picture     the same as a picture; `pictures` has what all of them share, such as fonts
"""
