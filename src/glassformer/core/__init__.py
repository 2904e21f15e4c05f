"""The maths: attention and all it needs, norms, feed-forward nets, residuals, and the classics.

Imports torch, and nothing of ours but errors. To read it in an evening: layout, masks,
kernels/plain, layer, attention, then positions and caches, then norms, feedforward and residual,
then kinds and the faster kernels.

One alphabet for shapes, here and everywhere:

    B batch   N tokens in a packed batch   T queries   S keys   D model width   H heads
    G key/value heads   K width of one head   W width of one value   V vocabulary   M mel bins
    C classes
"""
