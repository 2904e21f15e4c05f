"""What a report says first: whether the model is better than the baseline."""

import numpy as np
import pytest

from glassformer.metrics.paired import paired_test
from glassformer.runs.reporting import verdict


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (90, 70, "On 100 rows it is better than the baseline by 20.0 points (p < 0.001)."),
        (70, 90, "On 100 rows it is worse than the baseline by 20.0 points (p < 0.001)."),
        (81, 80, "On 100 rows it cannot be told apart from the baseline (p = 1)."),
    ],
)
def test_the_verdict_names_the_side_and_what_chance_does(ours, theirs, said):
    rows = np.arange(100)
    assert verdict(paired_test(rows < ours, rows < theirs), 100) == said
