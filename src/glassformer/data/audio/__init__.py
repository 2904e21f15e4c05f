"""Sound: from folders of recordings to features of frames.

    folder -> layouts: rows                                  a path and its text, or its label
    file   -> decoders: blocks of samples -> reading: one channel at one rate
           -> features: frames of mel bins -> normalise; both by an extractor

In reading order:

paths             which files are recordings
kaldi, layouts    data sets of recordings as rows
decoders          a file as blocks of samples, through soundfile or PyAV
reading           one channel at a given rate, streamed or whole; what makes two the same
features          log-mel filterbank energies and cepstra, as Kaldi computes them, in batches
normalise         mean 0 and variance 1, for each recording or over all of them
extractor         from samples to normalised features
clip              a recording as a small file, for a page to play
augment           SpecAugment, speed, volume and noise
morse             a text as Morse code, in noise
morse_decoder     such a recording as text, without learning
"""
