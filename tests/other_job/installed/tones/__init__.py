"""listen: recordings of tones to the words they play, as a package of anybody's own.

In the order to read them:

about       the name, a sentence, an option; imports no torch
settings    settings of its own, and defaults
sound       WAV files as numbers
data        the schema: a recording and its word; what makes two the same; a check
model       frames of sound to scores of letters
words       what was written, measured
task        batches, the CTC loss, letters from scores
predictor   the word of a new recording, and when each letter begins
reporter    scores, the most frequent word as a baseline, some rows
job         all of it put together
"""
