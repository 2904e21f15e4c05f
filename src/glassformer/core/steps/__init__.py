"""Steps: the parts of a decoder for one new token per sequence, in as few kernels as possible.

    linear            norm, linear layer, activation and residual connection
    products          its product: plain, prepacked or in int8
    sliced            its product for a single sequence on a CPU
    attention         rotary positions, writing to the cache, and attention over it
    paged_attention   the same where keys and values lie in pages
    keeping_kernel    rotary positions and pages of whole prompts
    overlap           kernels that begin before the one before them has ended

A step of decoding computes little, so its time goes into starting kernels. Each of these is one
or two on CUDA, written in Triton (`*_kernel.py`, imported only there); elsewhere it is a few
functions of PyTorch, which are also the reference in tests.
"""
