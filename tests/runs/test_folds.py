"""Folds: every row is tested once, by a model that never saw it, beside a baseline of the same."""

import collections
import json
import re
import shutil
from dataclasses import replace

import pytest
from quick import quickly
from small_runs import write_reviews

from glassformer.cli import main
from glassformer.config.values import read_values
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.files import write_text
from glassformer.reports import Report
from glassformer.runs import recipes
from glassformer.runs.display import Display
from glassformer.runs.folder import read_json
from glassformer.runs.folds import column_of, fold_of, rows_with_folds
from glassformer.runs.recipes import RECIPES, follow_folds, read_recipe
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.reporter import Baseline
from glassformer.tasks.shared.label_answers import ClassAnswers

ROWS, FOLDS = 131, 3
RECIPE = """
what = "Three folds, each of a few steps"
folds = 3

[[stage]]
job = "classify"
data = ["FILE"]
steps = 3

[stage.values.model.encoder]
dim = 16
depth = 1
attention = { heads = 2 }

[result]
score = "accuracy"
value = 0.5
low = 0.0
high = 1.0
command = "glassformer reproduce folded"
commit = "0000000"
machine = "any"
minutes = 0.1
"""


@pytest.fixture(scope="module", autouse=True)
def _quickly():
    with quickly():
        yield


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    home = tmp_path_factory.mktemp("recipe")
    data = write_reviews(home / "reviews.csv", count=ROWS)
    (home / "folded.toml").write_text(RECIPE.replace("FILE", str(data)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(RECIPES, "folded", home / "folded.toml")
        yield read_recipe("folded")


@pytest.fixture(scope="module")
def followed(recipe, tmp_path_factory):
    """The folder of a recipe that was followed to its end, and its report."""
    return follow_folds(recipe, Display(quiet=True), run=tmp_path_factory.mktemp("runs") / "out")


def table_of(data, group=None, job="classify"):
    lines = rows_with_folds(job, str(data), group, FOLDS).splitlines()
    return [json.loads(line) for line in lines]


def test_folds_share_the_rows_about_evenly():
    counts = collections.Counter(fold_of(f"text {n}", 10) for n in range(10_007))
    assert counts.keys() == set(range(1, 11))
    assert max(counts.values()) - min(counts.values()) < 200


def test_every_row_is_tested_in_one_fold_and_learned_in_the_others(tmp_path):
    data = write_reviews(tmp_path / "reviews.csv", count=ROWS)
    rows = table_of(data)
    assert len(rows) == ROWS
    for row in rows:
        said = [row[column_of(fold)] for fold in range(1, FOLDS + 1)]
        assert sorted(said) == ["test", "train", "train"]


def test_what_belongs_together_falls_into_one_fold(tmp_path):
    lines = [f"text {n} of it,{'ab'[n % 2]},film {n % 7}" for n in range(53)]
    lines += [f"TEXT  {n} of it,a,film 9" for n in range(3)]
    (tmp_path / "films.csv").write_text("text,label,film\n" + "\n".join(lines))
    folds = collections.defaultdict(set)
    for row in table_of(tmp_path / "films.csv", "film"):
        folds[row["group"]].add(row["fold-1"] + row["fold-2"])
    assert all(len(found) == 1 for found in folds.values())
    rows = table_of(tmp_path / "films.csv")
    for n in range(3):
        assert [rows[n][column_of(f)] for f in (1, 2)] == [
            rows[53 + n][column_of(f)] for f in (1, 2)
        ]


def test_pairs_fall_into_folds_by_their_source(tmp_path):
    lines = [f"word {n % 23}\tWort {n}" for n in range(46)]
    (tmp_path / "pairs.tsv").write_text("source\ttarget\n" + "\n".join(lines))
    rows = table_of(tmp_path / "pairs.tsv", job="translate")
    tested = [[row[column_of(fold)] for fold in range(1, FOLDS + 1)] for row in rows]
    assert tested[:23] == tested[23:]
    assert {row["target"] for row in rows} == {f"Wort {n}" for n in range(46)}


def test_data_with_a_split_of_their_own_are_refused(tmp_path):
    (tmp_path / "split.csv").write_text("text,label,split\na b c,x,train\nd e f,y,test\n")
    with pytest.raises(
        GlassformerError, match=r"split\.csv row 1 \(line 2\): has a split of its own, 'train'"
    ):
        table_of(tmp_path / "split.csv")


def test_all_rows_are_scored_together_by_models_that_never_saw_them(followed):
    folder, report = followed
    tested = []
    for fold in range(1, FOLDS + 1):
        samples = Samples.open(folder / column_of(fold) / "data")
        assert samples.texts("valid"), "a fold has rows to choose by"
        assert not set(samples.texts("test")) & {*samples.texts("train"), *samples.texts("valid")}
        tested += samples.texts("test")
    assert len(tested) == len(set(tested)) == ROWS
    [table] = [table for table in report.tables if table.title == "By fold"]
    rows, right = (sum(row[1] * (row[2] if n else 1) for row in table.rows) for n in (0, 1))
    assert rows == ROWS
    assert report.scores["this model"]["accuracy"].value == pytest.approx(right / rows)
    assert read_json(folder / "report.json")["scores"]["this model"]["accuracy"]


def test_a_stopped_recipe_goes_on_with_the_folds_that_are_missing(recipe, followed, tmp_path):
    shutil.copytree(followed[0], tmp_path / "out")
    for name in ("report.json", "model.safetensors"):  # the second is not finished
        (tmp_path / "out" / "fold-2" / name).unlink()
    shutil.rmtree(tmp_path / "out" / "fold-3")
    before = (tmp_path / "out" / "fold-1" / "model.safetensors").stat().st_mtime_ns
    _, report = follow_folds(recipe, Display(quiet=True), run=tmp_path / "out")
    assert (tmp_path / "out" / "fold-1" / "model.safetensors").stat().st_mtime_ns == before
    ours, theirs = (found.scores["this model"] for found in (report, followed[1]))
    assert ours["macro_f1"] == theirs["macro_f1"]
    with pytest.raises(GlassformerError, match="was trained with seed 0, not 5; name another"):
        follow_folds(recipe, Display(quiet=True), run=tmp_path / "out", seed=5)


def test_a_fold_that_stopped_between_two_stages_goes_on(recipe, tmp_path):
    [last] = recipe.stages
    first = replace(last, job="pretrain", values=last.values)
    staged = replace(recipe, stages=(first, replace(last, values={})), folds=2)
    out, quiet = tmp_path / "out", Display(quiet=True)
    follow_folds(staged, quiet, run=out)
    shutil.rmtree(out / "fold-1-stage-1")  # needed no more
    shutil.rmtree(out / "fold-2")
    for name in ("report.json", "model.safetensors"):
        (out / "fold-2-stage-1" / name).unlink()
    follow_folds(staged, quiet, run=out)
    assert not (out / "fold-1-stage-1").exists()
    assert (out / "fold-2-stage-1" / "model.safetensors").exists()
    origin = read_values(out / "fold-2" / "config.toml")["origin"]
    assert origin == str(out / "fold-2-stage-1")


def test_a_recipe_that_stopped_before_its_rows_were_written_goes_on(recipe, tmp_path, monkeypatch):
    out, quiet = tmp_path / "out", Display(quiet=True)

    def killed(text, path):
        if path.name == recipes.FOLD_TABLE:
            raise KeyboardInterrupt
        write_text(text, path)

    monkeypatch.setattr(recipes, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        follow_folds(recipe, quiet, run=out)
    assert [path.name for path in out.iterdir()] == [recipes.FOLLOWED]
    monkeypatch.setattr(recipes, "write_text", write_text)
    trained = []
    monkeypatch.setattr(recipes, "_train", lambda *words: trained.append(words[2].name))
    monkeypatch.setattr(recipes, "pool", lambda *_: Report(title="none"))
    follow_folds(recipe, quiet, run=out)
    assert trained == ["fold-1", "fold-2", "fold-3"]


def test_folds_of_a_recipe_that_was_changed_meanwhile_are_not_mixed(recipe, followed):
    changed = replace(recipe, stages=(replace(recipe.stages[0], steps=99), *recipe.stages[1:]))
    for other in (changed, replace(recipe, folds=7)):
        with pytest.raises(
            GlassformerError, match="was started with other settings than folded has"
        ):
            follow_folds(other, Display(quiet=True), run=followed[0])


def test_reproduce_shows_the_folds_together_and_holds_them_against_the_claim(
    followed, capsys, monkeypatch
):
    def certain(reporter, split):
        truth = reporter.task.label_ids[reporter.task.samples.rows(split)]
        chances = 0.1 + 0.8 * (truth[:, None] == [0, 1])
        return Baseline("n-grams", "sure", ClassAnswers.of_probabilities(chances, truth))

    monkeypatch.setattr(ClassifyReporter, "baseline", certain)
    out = str(followed[0])
    assert main(["reproduce", "folded", "--run", out, "--quiet"]) == 0
    printed = capsys.readouterr().out
    assert "agrees with the 0.500 [0.000, 1.000] measured at 0000000" in printed
    assert re.search(r"n-grams, one per fold +│ 1\.000", printed)
    assert main(["reproduce", "folded", "--run", out, "--quiet", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["claimed"]["value"], values["agrees"]) == (0.5, True)
    assert values["facts"]["folds"] == FOLDS
    assert values["scores"]["n-grams, one per fold"]["accuracy"]["value"] == 1
