"""Models: frontends, blocks, stacks of blocks, and the models built from them.

Reading order:

frontends/    from a batch to vectors: tokens, mel features, image patches
blocks/       Transformer, Conformer, Branchformer, E-Branchformer: one interface
stacks        an encoder and a decoder: blocks on top of each other
pooling       one vector for a whole sequence
transformer   the models: encoder-decoder, language model, masked model, classifier
baselines/    recurrent and convolutional encoders and decoders behind the same interface
build         any of them from its configuration; initialise: their initial weights
incremental/  a model step by step, as decoding needs it
packing       a model laid out for fast inference on a CPU
"""
