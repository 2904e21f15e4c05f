"""The maths: attention and everything it needs, norms, feed-forward networks and residuals.

Imports torch and, from this package, only `errors`. A reading order for one evening: layout, masks,
kernels/plain, layer, attention, then positions and caches, then norms, feedforward and residual,
then kinds and the faster kernels. All of it:

shapes, lengths   types of tensors of tokens; how long the rows of a batch are
layout            which vector belongs to which sequence, and where it stands there
masks/            who may see whom
scoring, bias     how a query is compared with a key; what distance adds to that
heads             how many there are, and how wide
kernels/          the same attention, from the one to read to the ones that run
layer, attention  what all kinds of attention share; attention itself
refusals          checks of its arguments
positions/        how order enters
caches/           keys and values of positions already read
norms             vectors at a scale that training can work with
feedforward       the same network at every position; gelu: its activation
residual          the connection around a sublayer; dropout: of elements and whole layers
kinds/            other formulas than softmax attention
classic           the attentions that came before
steps/            a decoder's step for one new token, in as few kernels as possible
cuda_graphs       a step captured once and replayed
int8, prepacked   weights in a quarter of the bytes; in the order in which a CPU reads them

The letters of shapes, here and throughout the package:

    B batch   N tokens in a packed batch   T queries   S keys   D model width   H heads
    G key/value heads   K width of one head   W width of one value   V vocabulary   M mel bins
    C classes
"""
