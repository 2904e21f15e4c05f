"""Sound: from files of recordings to features of frames.

    file -> decoders: blocks of samples -> reading: one channel at one rate -> features

In reading order:

decoders    a file as blocks of samples, through soundfile or PyAV
reading     one channel at the rate asked for, streamed or whole; facts of a file; what is the same
features    log-mel filterbank energies and cepstra, as Kaldi computes them, in batches
"""
