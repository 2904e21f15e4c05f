"""Models: frontends, blocks, stacks of blocks, and the models built from them.

Reading order:

frontends/     from a batch to vectors: tokens, mel features, image patches
blocks/        Transformer, Conformer, Branchformer, E-Branchformer: one interface
stacks         an encoder and a decoder: blocks on top of each other
pooling        one vector for a whole sequence
word_level     an encoder and a pool of words, in rows of characters
transformer    the models: encoder-decoder, language model, masked model, classifier
transcriber    sound to text, by CTC, by attention, or by both
ensemble       equal networks side by side, which answer with their mean
baselines/     recurrent and convolutional encoders and decoders behind the same interface
build          any of them from its configuration; initialise: their initial weights
losses/        losses over a vocabulary, and their gradients
incremental/   a model step by step, as decoding needs it
packing        a model laid out for fast inference on a CPU
fused_encoder  an encoder in a few functions of PyTorch a layer
"""
