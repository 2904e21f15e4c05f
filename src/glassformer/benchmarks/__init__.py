"""Benchmarks: speed and memory of attention, decoding, features and training on this machine.

    attention    the ladder: every kernel against PyTorch's own function, our module against others
    layers       the bars: full layers in training against their peers, packing, memory growth
    peers        the same layers in other libraries, with comparable settings
    complexity   the cost of each kind of layer against the length of the sequence; chart draws it
    translation  our decoding against that of others, with the same weights; marian: the model
    features     our log-mel features against Kaldi's
    training/    our training loop against those of others, with the same models
    generation/  our language models against those of others, with the same weights
    entries      what a command measures, by name, and on which kind of device
    memory       the peak memory of a piece of work
    report       the measurements and the machine, as tables and as plain values

A benchmark is a list of `Pair`s (`pairs.py`), built without allocating large tensors; `measure`
runs one. Comparisons are made within a pair, alternating (`timing.py`), because other load on a
machine changes its speed by more than the differences of interest. To add one, write a function
that lists pairs, and name it in `cli/bench.py`.
"""
