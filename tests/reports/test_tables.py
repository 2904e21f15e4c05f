"""Tables that the reports of several jobs have."""

import numpy as np
import pytest

from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison, classification_comparison
from glassformer.reports.tables import comparison_table

LABELS = np.array([0, 1, 2, 0, 1])
CHANCES = np.array(
    [[0.9, 0.1, 0.0], [0.7, 0.2, 0.1], [0.1, 0.85, 0.05], [0.6, 0.3, 0.1], [0.0, 1.0, 0.0]]
)


def test_a_comparison_tells_difference_chance_and_rows():
    found = classification_comparison(LABELS, CHANCES, np.eye(3)[LABELS])
    table = comparison_table(found, "ours", "theirs")
    assert table.title == "ours against theirs"
    assert [row[0] for row in table.rows] == ["accuracy", "macro-F1"]
    assert table.rows[0][1] == "-0.400"
    assert table.rows[0][5:] == (0, 2, 3)


@pytest.mark.parametrize(
    ("p", "said"), [(6.37e-58, "< 0.001"), (0.000999, "< 0.001"), (0.2, "0.2")]
)
def test_a_comparison_has_the_decimals_of_its_score_and_no_tiny_p(p, said):
    found = Comparison(Score(0.746, -1.267, 30.85), p, 3, 2, 1)
    rows = comparison_table({"ter": found, "cer": found}, "a", "b").rows
    assert rows[0] == ("TER", "+0.7", "-1.3", "+30.9", said, 3, 2, 1)
    assert rows[1][:5] == ("character error rate", "+0.746", "-1.267", "+30.850", said)
