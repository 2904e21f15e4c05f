"""Models: frontends, blocks, stacks of blocks, and the models made of them.

In the order to read them:

frontends/    from what a batch holds to vectors: tokens, mel features, image patches
blocks/       Transformer, Conformer, Branchformer, E-Branchformer: one interface
stacks        an encoder and a decoder: blocks on top of each other
pooling       one vector out of many
transformer   the models: encoder-decoder, language model, masked model, classifier
baselines/    recurrent and convolutional encoders and decoders behind the same interface
build         any of them from its configuration; initialise: the weights they start with
incremental/  a model step by step, as decoding needs it
packing       a model laid out for fast inference on a CPU
"""
