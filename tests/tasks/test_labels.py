"""Labels: found, numbered by name, stored, and refused where they cannot be learned."""

import json

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of, labelled

from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.metrics.classification import choose_threshold
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.shared.labels import Labels, quantities, separator_of


def refusal(folder, rows, **task):
    with pytest.raises(GlassformerError) as error:
        job_of("classify", folder, rows, task=task)
    assert "\n" not in str(error.value)
    return str(error.value).replace(f"{folder}/", "")


def many(*labels, times=2):
    return labelled(
        *((f"text {n} {t}", label) for n, label in enumerate(labels) for t in range(times))
    )


def test_labels_are_numbered_by_name_and_counted_in_the_training_part(tmp_path):
    rows = many("pear", "apple", " pear ") + labelled(("x", "fig"), ("y", "fig"), split="valid")
    labels = job_of("classify", tmp_path, rows).labels
    assert labels.names == ("apple", "fig", "pear")
    assert labels.counts == (2, 0, 4)
    assert labels.rows == 6
    assert not labels.multi


def test_a_separator_or_a_list_makes_several_labels(tmp_path):
    listed = many(["a", "b"], ["b"], [])
    joined = many("a | b", "b", "|")
    one = job_of("classify", tmp_path / "one", listed)
    two = job_of("classify", tmp_path / "two", joined, task={"separator": "|"})
    assert one.labels.names == two.labels.names == ("a", "b")
    assert (
        one.label_ids.tolist()
        == two.label_ids.tolist()
        == [[1, 1]] * 2 + [[0, 1]] * 2 + [[0, 0]] * 2
    )
    assert one.config.task.multi_label
    assert two.config.task.multi_label


def test_without_a_separator_a_field_is_one_label(tmp_path):
    assert job_of("classify", tmp_path, many("a|b", "c")).labels.names == ("a|b", "c")


def test_one_label_can_be_asked_for_as_one_of_several(tmp_path):
    job = job_of("classify", tmp_path, many("a", "b"), task={"multi_label": True})
    assert job.label_ids.tolist() == [[1, 0]] * 2 + [[0, 1]] * 2


def test_every_label_has_a_probability_and_several_may_be_named(tmp_path):
    labels = Labels(("a", "b", "c"), (1, 1, 1), 3, multi=True)
    [found] = labels.predictions(np.array([[0.9, 0.3, 0.5]]))
    assert found.text == "a, c"
    assert found.confidence == pytest.approx(0.5)
    assert found.as_values()["labels"] == ["a", "c"]
    assert found.as_values()["probabilities"] == {"a": 0.9, "b": 0.3, "c": 0.5}
    [nothing] = labels.predictions(np.array([[0.1, 0.2, 0.4]]))
    assert (nothing.text, nothing.details["labels"]) == ("", [])
    assert nothing.confidence == pytest.approx(0.6)
    assert json.dumps(found.as_values())


def test_one_label_comes_with_the_probability_of_each(tmp_path):
    [found] = Labels(("a", "b"), (1, 1), 2, multi=False).predictions(np.array([[0.25, 0.75]]))
    assert found.as_values() == {
        "prediction": "b",
        "confidence": 0.75,
        "label": "b",
        "probabilities": {"a": 0.25, "b": 0.75},
    }


def test_what_cannot_be_learned_is_refused_in_one_line(tmp_path):
    assert refusal(tmp_path, many("same", times=3)) == (
        "rows.jsonl row 1: a classifier needs two or more labels, found only 'same', here and in "
        'every other row; name the column with columns="text=...,label=..."'
    )
    assert "needs two or more labels, found none" in refusal(tmp_path, many([], []))
    rows = many("a", "b") + labelled(("x", "lone"))
    assert refusal(tmp_path, rows) == (
        "rows.jsonl row 5: label 'lone' occurs only once; it cannot be both trained on and scored: "
        'add rows, merge labels, or allow it with set="task.rarest=1"'
    )
    rows = many("a", "b", times=4) + many("c", "d", "e", times=3)
    assert "'c' occurs only 3 times, and 2 more are as rare; it" in refusal(
        tmp_path, rows, rarest=4
    )
    assert job_of("classify", tmp_path, rows, task={"rarest": 3}).labels.names == (*"abcde",)


def test_more_than_a_thousand_labels_are_taken_for_texts(tmp_path):
    rows = labelled(*((f"text {n}", f"label {n % 1001}") for n in range(2002)))
    assert refusal(tmp_path, rows) == (
        "rows.jsonl row 1001: more than 1,000 different labels, such as 'label 1000'; "
        "is it the right column? Name it with columns=..."
    )


@pytest.mark.parametrize(
    ("label", "words"),
    [
        (["a", "b"], "x row 2: 2 labels, but the model expects one per text; keep one"),
        ([], "x row 2: 0 labels, but the model expects one per text; keep one"),
        ("c", "x row 2: label 'c' is unknown to the model, whose labels are a, b; fix the row"),
    ],
)
def test_a_label_that_does_not_fit_is_refused_with_its_row(tmp_path, label, words):
    rows = [{"where": "x row 1", "label": "a"}, {"where": "x row 2", "label": label}]
    samples = Samples.write(tmp_path, (("test", row) for row in rows))
    with pytest.raises(GlassformerError) as refusal:
        Labels(("a", "b"), (1, 1), 2, multi=False).numbers(samples)
    assert str(refusal.value).startswith(words)
    with pytest.raises(GlassformerError, match=r"x row 2: label 'c' is unknown to the model"):
        Labels(("a", "b"), (1, 1), 2, multi=True).numbers(
            Samples.write(tmp_path, [("test", {"where": "x row 2", "label": ["a", "c"]})])
        )


def test_labels_come_back_from_their_file_and_a_broken_one_is_refused(tmp_path):
    path = tmp_path / "labels.json"
    labels = Labels(("a", "ü"), (2, 3), 5, multi=False, separator=None, temperature=1.7)
    labels.save(path)
    assert Labels.load(path) == labels
    for content in ("", "{}", '{"names": 3}', path.read_text()[:-5]):
        path.write_text(content)
        with pytest.raises(GlassformerError, match=r"labels.json: not the labels of a run \(.*; c"):
            Labels.load(path)
    with pytest.raises(GlassformerError, match=r"nowhere.json: not the labels of a run"):
        Labels.load(tmp_path / "nowhere.json")


def test_a_separator_is_found_where_its_pieces_are_labels_of_other_rows(tmp_path):
    rows = many("2", "5", "2,5", "7")
    labels = job_of("classify", tmp_path / "one", rows).labels
    assert labels.names == ("2", "5", "7")
    assert (labels.multi, labels.separator) == (True, ",")
    names = many("Smith, John", "Roe, Jo", "Smith, Jo")
    assert not job_of("classify", tmp_path / "two", names).labels.multi
    whole = job_of("classify", tmp_path / "three", rows, task={"multi_label": False}).labels
    assert whole.names == ("2", "2,5", "5", "7")
    other = job_of(
        "classify", tmp_path / "four", many("a|b,c", "a", "b,c"), task={"separator": "|"}
    )
    assert other.labels.names == ("a", "b,c")


def test_one_accident_makes_no_second_label():
    assert separator_of({"good": 500, "bad": 400, "good/bad": 1}) is None
    assert separator_of({"good": 50, "bad": 40, "good/bad": 7}) == "/"
    assert separator_of({"rock": 9, "rock;pop": 5, "pop": 3, "rock;a b": 0}) == ";"


def test_amounts_as_labels_are_refused_with_what_to_do(tmp_path):
    ages = [(f"text {n}", str(18 + n)) for n in range(53)]
    line = refusal(tmp_path, labelled(*ages))
    assert "the labels are 53 different numbers from 18 to 70: no job predicts amounts" in line
    assert "make a few grades of them" in line


@pytest.mark.parametrize(
    ("names", "amounts"),
    [
        ([f"{n}.50" for n in range(3, 29)], "26 different numbers from 3.50 to 28.50"),
        ([f"${n},000" for n in range(3, 29)], "26 different numbers from $3,000 to $28,000"),
        ([*map(str, range(150))], None),
        ([f"{n / 2}" for n in range(1, 11)], None),
        ([*map(str, range(18, 40)), "adult", "child"], None),
    ],
)
def test_amounts_are_told_from_grades_and_from_numbers_of_classes(names, amounts):
    assert quantities(names) == amounts


def test_labels_are_predicted_from_the_threshold_of_the_run_or_of_its_baseline_on(tmp_path):
    several = {"multi": True, "threshold": 0.3, "baseline_threshold": 0.2}
    labels = Labels(("a", "b", "c"), (1, 1, 1), 3, **several)
    chances = np.array([[0.3, 0.25, 0.1]])
    [own], [plain] = labels.predictions(chances), labels.predictions(chances, baseline=True)
    assert (own.text, plain.text) == ("a", "a, b")
    assert (own.details["threshold"], plain.details["threshold"]) == (0.3, 0.2)
    assert (own.confidence, plain.confidence) == (0.3, 0.25)  # of the least sure label
    path = tmp_path / "labels.json"
    labels.save(path)
    assert Labels.load(path) == labels
    earlier = json.loads(path.read_text())
    del earlier["threshold"], earlier["baseline_threshold"]
    path.write_text(json.dumps(earlier))
    assert Labels.load(path).threshold == Labels.load(path).baseline_threshold == 0.5


def several_labels(folder, **task):
    """A job whose texts have one or both of two labels."""
    rows = [
        {"text": text, "label": text.split(), "split": split}
        for split in ("train", "valid")
        for text in ["a b", "a", "b"] * 12
    ]
    return job_of("classify", folder, rows, task=task)


@pytest.mark.parametrize("fixed", [None, 0.7])
def test_the_threshold_is_chosen_on_the_validation_rows_unless_it_is_set(tmp_path, fixed):
    job = several_labels(tmp_path, threshold=fixed)
    model = job.model().eval()
    with torch.no_grad():
        model.to_class.bias.sub_(2.0)  # timid: at 0.5 it names no label
        assert job.score(model, [everything(job, "valid")])["accuracy"] > 0 or fixed
        ClassifyReporter(job).calibrate(job.answers(model, [everything(job, "valid")]))
        found = job.answers(model, [everything(job, "valid")])
    best = choose_threshold(found.labels, found.probabilities())
    assert found.threshold == job.labels.threshold == (fixed or best)
    assert Labels.load(tmp_path / "labels.json") == job.labels
    [said] = ClassifyReporter(job).decisions()[-1:]
    assert ("as task.threshold says" in said) == bool(fixed)
    assert f"{job.labels.threshold:g}" in said


def test_a_threshold_outside_of_what_probabilities_are_is_refused(tmp_path):
    with pytest.raises(GlassformerError, match=r"task\.threshold must lie between 0 and 1, got 30"):
        several_labels(tmp_path, threshold=30.0)
