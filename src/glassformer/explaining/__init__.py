"""Explanations: what a model attends to, and what a prediction is based on.

Reading order:

copies        eager copies of a model, to be looked into
watching      the attention weights of any model, whatever kernel runs, as `recording` keeps them
alignment     which source words each word of a translation attended to
hearing       what a transcriber makes of a sound: CTC posteriors and attention over time
parts         the parts of an explanation, as plain data
record        what one prediction is based on, as plain data
explanation   the same, which shows itself
looking       the attention of one reading
spread        attention between words, shown between their characters
heads         where each head looks, and its name
ablation      a model without some of its heads or layers
pruning       which heads can go together
subject       one input and what the model made of it, which a job provides
focus         the same with the target that matters most
text_pieces   the pieces of a text: words or tokens as they are written
methods       the influence of every piece on every target
blank         a token that says nothing, where gradients start from
faithfulness  whether the pieces that a method names first are those that count
nearest       what lies closest in the space of the encoder
summary       which words matter overall
views         how all of it is shown
"""
