"""Benchmarks: how fast attention and decoding are here, how much memory they take.

    attention   the ladder: every kernel against PyTorch's own function, our module against others
    layers      the bars: whole layers in training against their peers, packing, growth of memory
    complexity  the cost of each kind of layer against the length of the sequence
    translation our decoding against that of others, with the same weights

A benchmark is a list of `Pair`s, made without touching a large tensor; `measure` runs one. All that
is compared is compared within a pair, in turns (`timing.py`), because other work on a machine
changes its speed by more than what is to be seen. To add one, write a function that lists pairs,
and name it in `cli/bench.py`.
"""
