"""The maths: attention and everything it needs, norms, feed-forward networks and residuals.

Imports torch and, from this package, only `errors`. A reading order for one evening: layout, masks,
kernels/plain, layer, attention, then positions and caches, then norms, feedforward and residual,
then kinds and the faster kernels; `classic` holds the attentions that came before.

The letters of shapes, here and throughout the package:

    B batch   N tokens in a packed batch   T queries   S keys   D model width   H heads
    G key/value heads   K width of one head   W width of one value   V vocabulary   M mel bins
    C classes
"""
