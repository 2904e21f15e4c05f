"""Scores with intervals, calibration, and paired tests of two systems.

Everything takes numpy arrays and knows nothing of models. `classification`, `translation` and
`ranking` have the scores. `ratios` has the intervals of shares and rates, `calibration_error` its
own, and `intervals` those of any other score that is a function of sums over rows; a new job's
scores bring their sums and nothing else. `paired` compares two systems, `styles` says how scores
are written.
"""
