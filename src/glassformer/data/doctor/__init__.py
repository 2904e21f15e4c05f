"""The doctor: what is wrong with data, row by row, before a model learns from it.

    Reading -> Specimen -> Check, Check, Check ... -> Finding -> Examination -> a cleaned copy

Every row passes every check once, so data may be larger than memory. In the order to read them:

finding         what was found, in which rows, and what to do
check           what a check is; a job's schema lists those that suit its data
default_checks  what can be wrong with any data: empty, repeated, shared by splits
files           encodings, and rows taken for headers
reading         files as checks see them
examination     all rows shown to all checks
cleaning        a copy without the rows that are to be dropped
"""
