"""Scores with intervals, calibration, and paired tests of two systems.

Everything takes numpy arrays and knows nothing of models.

    classification      the scores of labels; translation: of texts; ranking: of lists
    error_rates         exact matches and edit rates; sacre: BLEU, chrF and TER
    calibration         how far confidence can be trusted, and temperatures that mend it
    measurement         a score as a function of sums over rows
    intervals           the interval of any such score, by the jackknife
    units               what rows are sampled by, and how many units an interval needs
    ratios              that of shares and rates; calibration_error has its own
    paired              two systems on the same rows
    seeds               trainings that differ only in their seed
    styles              how scores are written

A new job's scores bring their sums and nothing else.
"""
