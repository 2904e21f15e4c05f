"""transcribe: recordings of speech to text.

job             the job
about           its name, summary and options
settings        its settings and defaults
data            the schema: a recording and its transcript, in the layouts of common corpora
checks          what the doctor looks for
transcripts     normalisation of texts, and their tokens
sounds          batches of features
losses          CTC, attention, and both
listened        what a search needs of a model, ours or one of another class
searching       from a model to texts: CTC, attention, and both
decoder_work    the same by an engine, where a decoder writes
choices         the texts that a search finds; alternatives: the next best ones
rescoring       scores of given texts by an attention decoder
language_model  n-grams of the transcripts, and their weight; other_model: that of another run
answers         texts of many rows, and their scores
task            what training needs
predictor       texts of new recordings, and when each word is spoken
subtitles       the same as SRT or WebVTT
hearing         what a model must be able to hear: recordings up to a length, or streams
pieces          long recordings, piece by piece
live            a stream, written down while it arrives; pipe: sound from a pipe
picture         what was heard and when, as a picture
explainer       what each word is based on; subject is what methods of explanation see
reporter        the report, with the nearest recording as the baseline
nearest         answers with that baseline
"""
