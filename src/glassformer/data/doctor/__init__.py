"""The doctor: problems in the data, by row, before training.

    Reading -> Specimen -> Check, Check, Check ... -> Finding -> Examination -> a cleaned copy

Every row passes every check once, so data may be larger than memory. In reading order:

check           findings, and the interface of a check; a job's schema lists the ones for its data
default_checks  checks for any data: empty rows, duplicates, rows shared by splits
files           encodings, and rows mistaken for headers
reading         files as checks see them
examination     all rows shown to all checks
cleaning        a copy without the dropped rows; repairs: what it changes in the others
"""
