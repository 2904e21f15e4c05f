"""How often answers like one were right: bins of validation rows, whose share never falls."""

import numpy as np
import pytest

from glassformer.errors import GlassformerError
from glassformer.tasks.shared.reliability import FEWEST, FILE, SMALLEST, Reliability


def test_a_higher_probability_never_means_a_lower_share_and_no_row_is_lost():
    rng = np.random.default_rng(5)
    scores = np.round(rng.normal(-3, 2, 503), 1)
    right = rng.random(503) < 1 / (1 + np.exp(-scores - 3 + np.sin(9 * scores)))
    found = Reliability.fit(scores, right)
    shares = [one.share for one in found.bins]
    assert len(shares) > 2
    assert shares == sorted(shares)
    assert sum(one.rows for one in found.bins) == 503
    assert sum(one.right for one in found.bins) == right.sum()
    assert min(one.rows for one in found.bins) >= SMALLEST
    for low, high in zip(found.bins, found.bins[1:], strict=False):
        inside = (scores >= low.least) & (scores < high.least)
        assert (inside.sum(), right[inside].sum()) == (low.rows, low.right)


def test_an_answer_is_in_the_bin_of_its_score():
    found = Reliability.fit(np.repeat([-9.0, -0.1], 60), np.arange(120) >= 50)
    assert [found.of(score).right for score in (-9.0, -0.2, 0.0)] == [10, 10, 60]
    unlikely = found.of(-9.1)
    assert (unlikely.rows, unlikely.share) == (0, 0.0)
    assert unlikely.sentence() == "no answer to a validation row was as unlikely as this one"


def test_with_few_rows_nothing_is_said_and_nothing_old_is_kept(tmp_path):
    texts = ["yes"] * FEWEST
    references = [[("yes", "no")[n % 2]] for n in range(FEWEST)]
    scores = [-float(n % 2) for n in range(FEWEST)]
    found = Reliability.learn(tmp_path, texts, references, scores)
    assert [one.share for one in found.bins] == [0.0, 1.0]
    assert Reliability.load(tmp_path) == found
    assert Reliability.learn(tmp_path, texts[1:], references[1:], scores[1:]) is None
    assert Reliability.load(tmp_path) is None


@pytest.mark.parametrize("content", ["{", "{}", '{"bins": []}', '{"bins": [{"least": 0}]}', "[1]"])
def test_a_damaged_file_is_refused(tmp_path, content):
    (tmp_path / FILE).write_text(content)
    with pytest.raises(GlassformerError, match="copy the run again"):
        Reliability.load(tmp_path)
