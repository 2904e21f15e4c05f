"""Seeing inside: what a model looks at.

In the order to read them:

watching            the attention weights of any model, whatever kernel runs
alignment           which words of a source each word of an answer looked at
alignment_terminal  the same in a terminal; `terminal` has its shades
alignment_picture   the same as a picture; `fonts` finds characters
"""
