"""How results show themselves, in a terminal and in a notebook; their text is never obeyed."""

import torch

from glassformer.data.doctor.check import Finding
from glassformer.data.doctor.examination import Examination
from glassformer.data.splitter import IngestReport
from glassformer.errors import at_command_line
from glassformer.explaining.alignment import Alignment
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.runs.estimate import Disk, Estimate, Memory, Work
from glassformer.runs.evaluation import Evaluation
from glassformer.tasks.predictor import Prediction
from glassformer.training.cost import Part

ODD = "<i>\x1b[31m"  # would be obeyed by a page and by a terminal


def harmless(shown):
    """What an object shows in a notebook and in a terminal, if neither obeys its text."""
    page, text = shown._repr_html_(), repr(shown)
    assert "<i>" not in page
    assert "\x1b" not in page
    assert "\x1b" not in text
    return page, text


def score(value):
    return Score(value, value - 0.1, value + 0.1)


def evaluation(**more):
    counted = IngestReport(counts={"test": 1234})
    return Evaluation({"accuracy": score(0.8)}, counted, None, 3, [f"{ODD} is rare"], **more)


def test_an_evaluation_shows_its_scores_and_what_to_know_of_them():
    page, text = harmless(evaluation())
    assert text.splitlines() == [
        "Evaluation on 1,234 rows",
        "accuracy  0.800 [0.700, 0.900]",
        "3 rows were in the training or validation data; the scores are optimistic",
        "<i>\\x1b[31m is rare",
    ]
    assert "<td>accuracy</td><td>0.800 [0.700, 0.900]</td>" in page
    assert (
        "<p>3 rows were in the training or validation data; the scores are optimistic</p>" in page
    )


def test_a_prediction_shows_its_likeliest_answers_and_none_of_what_the_parts_are_made_of():
    details = {
        "probabilities": {"bad": 0.2, ODD: 0.8},
        "alternatives": [{"text": "bad", "confidence": 0.2}],
        "parts": {"model": {"bad": -1.5}, "ngrams": {"bad": 0.5}},
        "ngrams": [{"ngram": "b", "unit": "word", "adds": 0.1}],
    }
    page, _ = harmless(Prediction(ODD, 0.8, details))
    assert "<td>alternatives</td><td>bad 0.200</td>" in page
    assert "31m 0.800, bad 0.200</td>" in page
    assert "parts" not in page
    assert "word" not in page


def test_a_comparison_shows_both_runs_and_their_difference():
    gap = Comparison(score(0.2), 0.001, 7, 2, 5)
    both = Evaluation(
        {"accuracy": score(0.8)},
        IngestReport(counts={"test": 14}),
        {"accuracy": gap},
        None,
        others={"accuracy": score(0.6)},
    )
    page, text = harmless(both)
    assert "accuracy  0.800 [0.700, 0.900]  0.600 [0.500, 0.700]" in text
    assert text.endswith("accuracy: +0.200, p = 0.001")
    assert "<th>the other</th>" in page


def test_a_prediction_shows_its_text_and_the_likeliest_labels():
    shares = {f"label {n}": n / 21 for n in range(7)}
    page, text = harmless(
        Prediction(ODD, 0.2857, {"label": ODD, "probabilities": shares}, note=ODD)
    )
    assert text == "Prediction('<i>\\x1b[31m', 0.286)"
    assert "label 6 0.286, label 5 0.238, label 4 0.190, label 3 0.143, label 2 0.095, ..." in page
    assert page.count("&lt;i&gt;") == 2  # the text and the note, and not the text again
    assert repr(Prediction("", 0.0, {}, empty=True)) == "Prediction('', 0.000, empty)"


def test_an_alignment_shows_each_word_with_the_one_it_attended_to():
    weights = torch.tensor([[0.1, 0.8], [0.7, 0.1]])
    page, text = harmless(Alignment(("早上", ODD), ("Good", "morning"), weights))
    assert text.splitlines() == [
        "Alignment of 2 words",
        "Good     <i>\\x1b[31m  0.80",
        "morning  早上         0.70",
    ]
    assert 'rgba(0, 114, 178, 1.00); min-width: 2em" title="0.80"' in page
    aligned = Prediction("Good", 0.9, {}, explanation=Alignment(("a",), ("b",), torch.ones(1, 1)))
    assert 'title="1.00"' in aligned._repr_html_()
    assert repr(Alignment((), (), torch.zeros(0, 0))) == "Alignment of 0 words"


def test_an_examination_shows_its_findings_in_the_words_of_python():
    finding = Finding("x", "warning", f"{ODD} is everywhere", "drop it with --fix", [3], ("row 4",))
    found = Examination(
        findings=(finding,), rows={"train": 9}, seen=9, total=9, job="classify", columns={ODD: {}}
    )
    page, text = harmless(found)
    assert text.splitlines() == [
        "<i>\\x1b[31m: for classify, 9 train rows",
        "warning: <i>\\x1b[31m is everywhere (first row 4); drop it with .fix(path)",
    ]
    assert "<td>drop it with .fix(path)</td><td>row 4</td>" in page
    assert repr(finding) == text.splitlines()[1]
    harmless(finding)
    with at_command_line():
        assert repr(finding).endswith("; drop it with --fix")
    clear = Examination(findings=(), rows={"train": 9}, seen=9, total=9, job="classify")
    assert repr(clear) == "for classify, 9 train rows\nAll clear: nothing to fix."
    single = Examination(findings=(), rows={"train": 1}, seen=1, total=1, job="classify")
    assert single.title == "for classify, 1 train row"


def test_an_estimate_shows_every_resource_with_its_breakdown():
    numbers = {"weights": 4000, "gradients": 4000, "optimiser": 8000, "averages": 0}
    memory = Memory(before=0, activations=10**6, measured=True, room=None, **numbers)
    work = Work(
        steps=50, epochs=2.0, tokens_a_step=100.0, tokens_an_epoch=2500, flops=1e9, speed=2e9
    )
    found = Estimate(
        job="classify",
        machine="cpu",
        parts={"encoder": Part(700, 0), "frontend": Part(0, 300), "head": Part(5, 2)},
        work=work,
        memory=memory,
        disk=Disk(total=5000, room=10**9),
        seconds={"learning": 75.0},
        notes=("It may finish sooner.",),
    )
    page, text = harmless(found)
    lines = text.splitlines()
    assert lines[0] == "classify on cpu"
    assert lines[1].startswith("parameters  1,007")
    assert lines[1].endswith("  encoder 700, frontend 300 (all frozen), head 7 (2 frozen)")
    assert [line.split()[0] for line in lines[1:-1]] == [
        *("parameters", "steps", "tokens", "compute", "memory", "available", "disk", "time")
    ]
    assert "enough: unknown" in text
    assert lines[-1] == "It may finish sooner."
    assert "<td>1m15s</td><td>learning 1m15s</td>" in page
