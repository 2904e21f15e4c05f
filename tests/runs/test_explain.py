"""Labels explained: what is left out, what is read, and what is refused."""

import json
import shutil

import pytest
import torch
from quick import quickly, unchecked
from small_runs import WORDS, learn, write_reviews

import glassformer
from glassformer.cli import main
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.explaining.methods import METHODS

TEXT = "The film was great, with some people who said: a lovely town."


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    data = write_reviews(folder / "reviews.csv")
    with unchecked():
        return learn(data, folder / "run", "model.ngrams=no", steps=30)


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    longer = ("task.long=windows", "task.max_length=7")
    with quickly():
        return learn(write_reviews(folder / "reviews.csv"), folder / "run", *longer, steps=3)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_each_piece_an_influence_on_each_label(run, method):
    found = run.explain(TEXT, method=method)
    assert "".join(found.pieces) == TEXT
    assert found.influence.shape == (2, len(found.pieces))
    assert found.influence.abs().sum() > 0


@pytest.mark.parametrize("name", ["run", "windows"])
def test_the_scores_of_all_pieces_are_those_of_the_input(name, request):
    used = request.getfixturevalue(name)
    subject = used.explainer.job.subject(used.model, TEXT)
    every = torch.ones(1, len(subject.pieces), dtype=torch.bool)
    scores = subject.scores(subject.model, copies=2)
    assert torch.allclose(scores, subject.scores_of(every).expand(2, -1), atol=1e-5)
    odds = torch.tensor([target.probability for target in subject.targets]).logit()
    assert torch.allclose(scores[0], odds, atol=1e-4)


def test_leaving_out_a_word_gives_the_answer_for_the_shorter_text(run):
    without = run.predict("the film great").details["probabilities"]
    kept = torch.tensor([[True, True, False, True]])
    subject = run.explainer.job.subject(run.model, "the film was great", unit="word")
    expected = torch.tensor([without[target.text] for target in subject.targets])
    assert torch.allclose(subject.scores_of(kept)[0].sigmoid(), expected, atol=1e-5)


def test_the_influence_of_ngrams_is_that_of_the_baseline(run):
    found = run.explain(TEXT, method="ngrams")
    baseline = run.explainer.job.baseline
    with_all, with_none = torch.from_numpy(baseline.logits([TEXT, ""])).diff()  # of two labels
    names = run.task.labels.names
    signs = torch.tensor([2 * names.index(target.text) - 1 for target in found.targets])
    expected = signs * (with_all - with_none)
    assert torch.allclose(found.influence.sum(1).double(), expected, atol=1e-5)
    great = found.pieces.index("great")
    assert found.influence[[t.text for t in found.targets].index("good"), great] > 0


def test_a_run_without_a_baseline_has_no_ngrams_to_explain_by(run, tmp_path):
    copied = shutil.copytree(run.folder.path, tmp_path / "copied")
    (copied / "baseline.json").unlink()
    with pytest.raises(GlassformerError, match="keeps no n-gram baseline to explain by"):
        glassformer.load(copied).explain(TEXT, method="ngrams")


def test_what_a_model_does_not_read_is_in_no_piece(tmp_path):
    data = write_reviews(tmp_path / "reviews.csv")
    with quickly():
        short = learn(data, tmp_path / "run", "task.max_length=5", steps=1)
    found = short.explain(TEXT, method="attention")
    assert found.pieces == ("The ", "film ", "was ", "great")
    assert found.notes[0].startswith("The text is too long; words that are not read: ")


def test_the_command_prints_the_influence_of_each_word(run, capsys):
    assert main(["explain", str(run.folder.path), TEXT, "--json", "--target", "bad"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["targets"][0]["text"] == "bad"
    assert len(found["influence"][0]) == len(found["pieces"])
    assert main(["explain", str(run.folder.path), TEXT]) == 0
    assert "lovely" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "occlsion"}, "unknown method 'occlsion'; did you mean 'occlusion'?"),
        ({"target": "god"}, "unknown label 'god'; did you mean 'good'?"),
        ({"unit": "letter"}, "unknown unit 'letter'; the choices are word, token"),
    ],
)
def test_an_unknown_choice_is_refused(run, options, message):
    with pytest.raises(GlassformerError, match=message.replace("?", r"\?")):
        run.explain(TEXT, **options)


def test_an_empty_text_is_refused(run, tmp_path):
    data, letters = write_reviews(tmp_path / "few.csv", 20), "data.tokenizer.kind=characters"
    with quickly():
        spelt = learn(data, tmp_path / "run", letters, steps=1)
    for used, text in ((run, " "), (spelt, " "), (spelt, "")):
        with pytest.raises(GlassformerError, match=f"'{text}' has nothing to explain; give a text"):
            used.explain(text)


def test_faithfulness_is_measured_once_and_kept(run, monkeypatch):
    found = run.explain(TEXT)
    assert found.verdict.startswith("faithfulness not known: too few inputs for a verdict: 10")
    stored = json.loads((run.folder.path / "faithfulness.json").read_text())
    assert {*METHODS, "a random order"} == {*stored["methods"]}
    monkeypatch.setattr("glassformer.runs.explain.measured_on", None)  # not called again
    assert run.explain(TEXT).verdict == found.verdict


def test_what_is_measured_on_other_rows_is_not_kept(run, tmp_path):
    run.explain(TEXT)
    path = run.folder.path / "faithfulness.json"
    kept = path.read_text()
    assert run.explainer.measure(write_reviews(tmp_path / "few.csv", 5)).found.rows <= 5
    assert path.read_text() == kept


def test_a_changed_faithfulness_is_refused_and_one_of_another_model_measured_again(run, tmp_path):
    run.explain(TEXT)
    copied = glassformer.load(shutil.copytree(run.folder.path, tmp_path / "copied"))
    path = copied.folder.path / "faithfulness.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"rows": 1000}))
    with pytest.raises(GlassformerError, match=r"faithfulness.json: changed since the run wrote"):
        copied.explain(TEXT)
    path.write_text(json.dumps(values | {"model": "another"}))
    assert "1000 rows" not in copied.explain(TEXT).verdict


def test_without_its_rows_a_run_says_that_faithfulness_is_unknown(run, tmp_path):
    copied = shutil.copytree(run.folder.path, tmp_path / "copied")
    shutil.rmtree(copied / "data")
    (copied / "faithfulness.json").unlink(missing_ok=True)
    found = glassformer.load(copied).explain(TEXT)
    assert found.verdict == "faithfulness not measured"
    assert found.method == "occlusion"  # of so few words


def test_the_nearest_training_row_of_a_training_row_is_itself(run):
    samples = Samples.open(run.folder.data)
    sample = next(samples.of("train"))
    first, second = run.explain(sample["text"], method="attention", nearest=2).neighbours
    assert (first.where, first.text, first.target) == (
        sample["where"],
        sample["text"],
        sample["label"],
    )
    assert first.similarity == pytest.approx(1, abs=1e-5)
    assert second.similarity < first.similarity


def test_texts_in_several_pieces_have_neighbours_too(windows):
    sample = next(Samples.open(windows.folder.data).of("train"))
    [found] = windows.explain(sample["text"], method="attention", nearest=1).neighbours
    assert found.where == sample["where"]


def test_a_summary_lists_the_words_that_matter_for_each_label(run, capsys):
    command = ["explain", str(run.folder.path), "--summary", "--method", "occlusion"]
    assert main(command) == 0
    assert "Words that matter overall" in capsys.readouterr().out
    data = run.folder.path.parent / "some.csv"
    data.write_text("".join((data.parent / "reviews.csv").open().readlines()[:31]))
    assert main([*command[:2], str(data), *command[2:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "occlusion"
    good = [one["word"] for one in found["words"]["good"]["for"]]
    assert {*WORDS["good"]} & {*good[:5]}
    assert not {*WORDS["bad"]} & {*good}
    assert found["heads"]["rows"] > 0


def test_a_summary_needs_no_labels(run, tmp_path):
    data = tmp_path / "texts.csv"
    data.write_text("text\n" + "a lovely film\n" * 4)
    summary = run.explainer.summary(str(data), method="occlusion")
    assert summary.found.rows == 4
    assert "Words that matter overall, in 4 rows" in summary._repr_html_()
    assert run.heads.look(str(data)).rows == 4
    data.write_text("text,label\n" + "a lovely film,\n" * 3)
    assert run.explainer.summary(str(data), method="occlusion").found.rows == 3
    with pytest.raises(GlassformerError, match="no column for label"):
        run.heads.ablate("0.1", data=[{"text": "a film"}])


def test_several_inputs_at_once_are_refused_in_words_of_explain(run):
    with pytest.raises(
        GlassformerError, match=r"explain takes one text, got \['a', 'b'\]; explain"
    ):
        run.explain(["a", "b"])


def test_faithfulness_is_shown_for_every_method(run, capsys):
    assert main(["explain", str(run.folder.path), "--faithfulness"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in (*METHODS, "a random order"))


def test_nothing_to_explain_is_refused(run, capsys):
    assert main(["explain", str(run.folder.path)]) == 1
    assert "glassformer: nothing to explain; give a text, or --summary" in capsys.readouterr().err
