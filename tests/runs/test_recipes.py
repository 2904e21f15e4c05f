"""Recipes: each can be followed, and the page of results shows what they claim."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import results

from glassformer.cli import main
from glassformer.data.catalog import CATALOG
from glassformer.errors import GlassformerError
from glassformer.metrics.classification import classification_scores
from glassformer.metrics.styles import style_of
from glassformer.runs import recipes
from glassformer.runs.display import Display
from glassformer.runs.recipes import RECIPES, follow, read_recipe
from glassformer.runs.request import TrainRequest
from glassformer.tasks import JOBS
from glassformer.tasks.translate.answers import MEASURES, Translations

ROOT = Path(__file__).parents[2]
TINY = """
what = "Two stages, each of a few steps"

[[stage]]
job = "pretrain"
data = ["FILE"]
steps = 3
values = { model = { encoder = { dim = 8, depth = 1, attention = { heads = 2 } } } }

[[stage]]
job = "classify"
data = ["FILE"]
steps = 4

[result]
score = "accuracy"
value = 0.5
low = 0.0
high = 1.0
command = "glassformer reproduce tiny"
commit = "0000000"
machine = "any"
minutes = 0.1
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    rows = [f"the {mood} film of year {n},{mood}" for n in range(60) for mood in ("good", "bad")]
    (tmp_path / "films.csv").write_text("text,label\n" + "\n".join(rows))
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(TINY.replace("FILE", str(tmp_path / "films.csv")))
    monkeypatch.setitem(RECIPES, "tiny", recipe)
    return recipe


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_settles_into_a_configuration(name, tmp_path):
    for stage in read_recipe(name).stages:
        assert set(stage.data) <= set(CATALOG)
        options = {field: getattr(stage, field) for field in type(stage).__dataclass_fields__}
        options["device"] = "cpu"
        config = TrainRequest(**options).resolve()
        assert config.data.group == CATALOG[stage.data[0]].group, "it splits as the catalog says"


@pytest.mark.parametrize("name", RECIPES)
def test_a_claim_names_its_command_and_lies_in_its_interval(name):
    result = read_recipe(name).result
    if result is None:
        pytest.skip("not measured yet")
    assert result.command == f"glassformer reproduce {name}"
    assert re.fullmatch(r"[0-9a-f]{7,40}", result.commit)
    if result.interval is not None:
        assert result.low <= result.value <= result.high


def test_the_page_of_results_shows_what_the_recipes_claim():
    page = results.PAGE.read_text(encoding="utf-8")
    assert page == results.results_page(), "make docs writes it anew"
    shown = re.findall(
        r"^\| `([\w-]+)`(?: [†‡])? \| .*? \| \*\*([\d.]+)\*\*(?: \[([\d.]+), ([\d.]+)\])? \|",
        page,
        flags=re.MULTILINE,
    )

    def written(score, x):
        """As a share of 100, or in the unit of the score."""
        style = style_of(score)
        return f"{100 * x:.1f}" if style.most == 1 else f"{x:.{style.decimals}f}"

    def ends_of(found):
        return [written(found.score, x) for x in found.interval or ()] or ["", ""]

    claimed = {
        name: (written(found.score, found.value), *ends_of(found))
        for name in RECIPES
        if (found := read_recipe(name).result) is not None
    }
    assert {name: (value, low, high) for name, value, low, high in shown} == claimed


def test_a_later_stage_begins_with_what_the_one_before_learned(tiny, tmp_path):
    run = follow(read_recipe("tiny"), Display(quiet=True), run=tmp_path / "out")
    assert run.config.origin == str(tmp_path / "out-stage-1")
    assert run.config.model.encoder.dim == 8
    assert (tmp_path / "out" / "initial.safetensors").exists()


def test_reproduce_says_whether_the_score_agrees(tiny, tmp_path, capsys):
    assert main(["reproduce", "tiny", "--run", str(tmp_path / "out"), "--quiet"]) == 0
    assert "agrees with the 0.500 [0.000, 1.000] measured at 0000000" in capsys.readouterr().out


def test_a_result_that_differs_from_the_claim_ends_with_1(tiny, tmp_path, capsys, monkeypatch):
    text = tiny.read_text()
    run = follow(read_recipe("tiny"), Display(quiet=True), run=tmp_path / "out")
    monkeypatch.setattr(recipes, "follow", lambda *_, **__: run)
    tiny.write_text(re.sub(r"(value|low|high) = \S+", r"\1 = 2.0", text))
    assert main(["reproduce", "tiny", "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert "differs from the 2.000 measured" in out
    assert "Use it: " in out
    assert err == ""
    assert main(["reproduce", "tiny", "--json"]) == 1
    values = json.loads(capsys.readouterr().out)
    assert values["claimed"]["score"] == "accuracy"
    assert values["agrees"] is False
    tiny.write_text(text[: text.index("[result]")])
    assert main(["reproduce", "tiny", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["claimed"], values["agrees"]) == (None, None)


def test_a_score_that_is_no_number_differs_from_any_claim(tiny):
    claim = replace(read_recipe("tiny").result, score="bleu", value=31.234, low=30.0, high=32.0)
    nothing = {"value": None, "low": None, "high": None}
    assert not claim.agrees(nothing)
    assert claim.verdict(nothing).startswith("bleu – differs from the 31.2 [30.0, 32.0]")
    assert claim.verdict({"value": 32.5, "low": 31.9, "high": 33.1}).startswith("bleu 32.5 agrees")


def test_a_recipe_of_ones_own_is_named_by_its_file(tiny, tmp_path):
    recipe = read_recipe(str(tiny))
    assert (recipe.name, recipe.reference) == ("tiny", str(tiny))
    assert len(recipe.stages) == 2
    tiny.write_text("[stage]\njob = 'classify'\n")
    with pytest.raises(GlassformerError, match=r"tiny\.toml: a recipe needs `what`"):
        read_recipe(str(tiny))
    with pytest.raises(GlassformerError, match=r"none\.toml: cannot be read"):
        read_recipe(str(tmp_path / "none.toml"))


RESULT = TINY[TINY.index("[result]") :]
STAGE = "what = 'x'\n[[stage]]\njob = 'classify'\ndata = ['a.csv']\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("what = 'x'\nstage = [1, 2]", "a recipe needs `what`"),
        ("what = 'x'\nstage = []", "a recipe needs `what`"),
        ("fold = 3\n" + STAGE, "unknown key 'fold'; did you mean 'folds'"),
        ("result = 5\n" + STAGE, "result must be a table"),
        ("folds = 'ten'\n" + STAGE, "folds must be a whole number of 2 or more, got 'ten'"),
        ("folds = 0\n" + STAGE, "folds must be a whole number of 2 or more, got 0"),
        ("folds = 3\n" + STAGE.replace("classify", "pretrain"), "pretrain cannot be cross-v"),
        (
            "folds = 3\n" + STAGE.replace("['a.csv']", "['a.csv', 'b.csv']"),
            "folds need the same single table",
        ),
        (STAGE + "colour = 'red'", "unknown setting 'stage.colour'"),
        (STAGE + "[result]\nscore = 'accuracy'", "missing"),
        (STAGE + RESULT.replace("accuracy", "acuracy"), "result.score: unknown score 'acuracy'; d"),
        (STAGE + RESULT.replace("accuracy", "bleu"), "result.score: unknown score 'bleu'; the ch"),
        (STAGE + RESULT.replace("high = 1.0", "high = 0.1"), "result.value must lie between"),
        (STAGE + RESULT.replace("low = 0.0", "low = 0.9"), "result.value must lie between"),
        (STAGE + RESULT.replace("= 0.1", "= -1"), "result.minutes must be 0 or more, got -1"),
    ],
)
def test_a_recipe_that_cannot_be_followed_is_refused_when_it_is_read(text, complaint, tmp_path):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(GlassformerError) as caught:
        read_recipe(str(tmp_path / "mine.toml"))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.toml'}: ")
    assert complaint in str(caught.value)


def test_a_folder_that_is_taken_is_refused_before_the_first_stage(tiny, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep")
    with pytest.raises(GlassformerError, match=r"out: already exists"):
        follow(read_recipe("tiny"), Display(quiet=True), run=tmp_path / "out")
    assert not (tmp_path / "out-stage-1").exists()
    (tmp_path / "new-stage-1").mkdir()
    (tmp_path / "new-stage-1" / "mine.txt").write_text("keep")
    with pytest.raises(GlassformerError, match=r"new-stage-1: already exists"):
        follow(read_recipe("tiny"), Display(quiet=True), run=tmp_path / "new")


def test_a_claim_about_a_score_that_is_not_there_is_said(tiny, tmp_path, capsys):
    tiny.write_text(tiny.read_text().replace('"accuracy"', '"micro_f1"'))  # of several labels
    assert main(["reproduce", str(tiny), "--run", str(tmp_path / "out"), "--quiet"]) == 1
    assert "result.score: unknown score 'micro_f1'; did you mean" in capsys.readouterr().err


def test_the_scores_that_can_be_claimed_are_those_of_the_jobs():
    labels, said = np.array([0, 1]), np.eye(2)
    several = classification_scores(np.eye(2, dtype=int), said)
    assert {*JOBS["classify"].reporter.score_names} == {
        *classification_scores(labels, said),
        *several,
    }
    texts = [["two dogs play"]] * 2
    for measure in MEASURES:
        found = Translations(["two dogs"] * 2, texts, measure, np.ones(2), np.ones(2)).scores()
        assert {*found} <= {*JOBS["translate"].reporter.score_names}
    assert all(JOBS[name].reporter.score_names for name in JOBS)


def test_an_unknown_recipe_is_refused_with_the_nearest_name():
    with pytest.raises(GlassformerError, match=r"did you mean 'imdb-cpu'"):
        read_recipe("imdb-cpuu")


def test_without_a_name_the_recipes_are_listed(capsys):
    assert main(["reproduce"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in RECIPES)


def test_recipes_are_found_beside_the_package():
    assert recipes.home() == ROOT / "recipes"
