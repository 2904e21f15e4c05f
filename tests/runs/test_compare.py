"""A comparison: killed and continued, its findings, its files, and what is refused."""

import json
import re

import pytest
from quick import quickly
from small_runs import SETTINGS, same, weights, write_reviews

import glassformer
from glassformer import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.reports.variants import BEST
from glassformer.runs import compare, parallel
from glassformer.runs.comparing import mean_score

VARY = {"model.position": ["none", "rotary"], "data.token_dropout": [0.0, 0.5]}
RUNS = 6  # three variants, one at a time, with two seeds each


class KilledError(BaseException):
    """Stands for SIGKILL."""


def compared(data, folder, **asked):
    usual = {"vary": VARY, "one_at_a_time": True, "seeds": 2, "steps": 4, "set": SETTINGS}
    usual |= {"run": folder, "at_once": 1, "quiet": True}
    with quickly():
        return glassformer.compare("classify", data, **usual | asked)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    write_reviews(folder / "reviews.csv")
    write_reviews(folder / "longer.csv", 23, length=29, seed=2)
    return folder


@pytest.fixture(scope="module")
def killed(home):
    """Times when the models of a comparison were written that was killed in its fourth run."""
    resume, begun = parallel.resume, []

    def until_killed(path, **options):
        begun.append(path)
        if len(begun) == 4:
            raise KilledError
        return resume(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "resume", until_killed)
        with pytest.raises(KilledError):
            compared(home / "reviews.csv", home / "killed")
    return {path: path.stat().st_mtime_ns for path in home.glob("killed/*/model.safetensors")}


@pytest.fixture(scope="module")
def found(home, killed):
    return compared(home / "reviews.csv", home / "killed", longer=[home / "longer.csv"])


def test_finished_runs_are_kept_and_the_others_are_trained(home, killed, found):
    models = sorted(home.glob("killed/*/model.safetensors"))
    assert (len(killed), len(models)) == (3, RUNS)
    assert all(path.stat().st_mtime_ns == time for path, time in killed.items())
    assert not list((home / "killed").glob(".*prepared*"))
    assert "3 runs trained before this command was given again: speed and" in found.notes[-1]


def test_one_seed_of_all_variants_comes_before_the_next(killed):
    assert {path.parent.name[-7:] for path in killed} == {"-seed-0"}


def test_every_run_is_an_ordinary_run(home, found):
    path = home / "killed" / "position=rotary,token_dropout=0.0-seed-1"
    run = glassformer.load(path)
    assert run.config.seed == 1
    assert run.config.model.encoder.position.kind == "rotary"
    assert run.predict("a great film").text in ("good", "bad")
    assert "glassformer compare classify" in (path / "command.txt").read_text(encoding="utf-8")


def test_seeds_share_their_rows_and_differ_in_their_weights(home, found):
    runs = [home / "killed" / f"position=none,token_dropout=0.0-seed-{seed}" for seed in (0, 1)]
    samples = [(run / "data" / "parts.npy").read_bytes() for run in runs]
    assert samples[0] == samples[1]
    assert not same(*map(weights, runs))


def test_each_variant_has_scores_differences_and_costs(found):
    assert [one.name for one in found.variants] == [
        "position=none, token_dropout=0.0",
        "position=rotary, token_dropout=0.0",
        "position=none, token_dropout=0.5",
    ]
    for one in found.variants:
        score = one.scores["accuracy"]
        assert score.low <= score.value <= score.high
        assert score.value == pytest.approx(sum(one.by_seed) / 2)
        assert (one.difference is None) == (one.verdict == BEST)
        assert min(one.parameters, one.tokens_per_second, one.rows_per_second) > 0
        assert one.steps == 4
        assert [step for step, _ in one.curve] == [4]
    best = max(found.variants, key=lambda one: one.scores["accuracy"].value)
    assert found.best.scores["accuracy"].value == best.scores["accuracy"].value
    assert "10 rows of the validation split" in found.facts["scored on"]


def test_differences_are_those_of_the_scores(found):
    for one in found.variants:
        if one.difference is not None:
            gap = one.scores["accuracy"].value - found.best.scores["accuracy"].value
            assert one.difference.value == pytest.approx(gap)


def test_a_few_rows_are_a_tie(found):
    assert found.verdict().startswith("No significant difference: all 3 are tied; ")


def test_other_rows_are_scored_besides(home, found):
    assert [[*one.longer] for one in found.variants] == [[str(home / "longer.csv")]] * 3
    run = glassformer.load(home / "killed" / "position=none,token_dropout=0.0-seed-0")
    scores = [run.evaluate(home / "longer.csv").scores["accuracy"].value]
    assert 0 <= scores[0] <= 1


def test_the_result_is_written_as_json_markdown_and_a_page_of_its_own(home, found):
    folder = home / "killed"
    values = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert values["verdict"] == found.verdict()
    assert [one["name"] for one in values["variants"]] == [one.name for one in found.variants]
    markdown = (folder / "comparison.md").read_text(encoding="utf-8")
    assert markdown.count("\n| position=") == 3
    assert "- command: `glassformer compare classify " in markdown
    page = (folder / "comparison.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="', page)
    assert page.count("<svg") > 10


def test_it_shows_itself(found):
    assert "●" in repr(found)
    assert found.verdict() in repr(found)
    assert "<table>" in found._repr_html_()


def test_without_a_folder_the_same_command_continues_and_trains_nothing(
    home, found, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parallel, "resume", None)
    (tmp_path / "runs").mkdir()
    (home / "killed").rename(tmp_path / "runs" / "reviews-compare")
    try:
        again = compared(home / "reviews.csv", None)
    finally:
        (tmp_path / "runs" / "reviews-compare").rename(home / "killed")
    assert again.facts["folder"] == "runs/reviews-compare"
    assert again.verdict() == found.verdict()


def refusal(data, folder, **asked):
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(GlassformerError) as error:
        compared(data, folder, **asked)
    assert sorted(folder.parent.rglob("*")) == before
    return str(error.value)


def test_a_folder_made_with_other_settings_is_refused(home, found):
    said = refusal(home / "reviews.csv", home / "killed", seeds=3, size="tiny")
    assert "was made with other settings (seeds, size); give the same ones, or name" in said
    said = refusal(home / "reviews.csv", home, vary=VARY)
    assert "already exists" in said


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"steps": None}, "a comparison needs a budget, the same for every variant; add time"),
        ({"vary": {"model.attention.heads": [2, 3]}}, "model.attention.heads=3: "),
        ({"vary": {"model.norm": ["layer", "layer"]}}, "lists layer twice"),
        ({"seeds": 0}, "seeds must be a whole number of 1 or more, got 0"),
        ({"at_once": 0}, "at_once must be a whole number of 1 or more, got 0"),
        ({"on": "train"}, "unknown split in on 'train'"),
        ({"seed": 1}, "unknown argument of compare 'seed'; did you mean 'seeds'?"),
        ({"pretrain": False}, "unknown argument of compare 'pretrain'"),
        ({"set": [*SETTINGS, "data.valid_share=0"]}, "there are no validation rows to compare on"),
    ],
)
def test_refusals_name_what_is_wrong_and_leave_nothing_behind(home, tmp_path, asked, message):
    assert message in refusal(home / "reviews.csv", tmp_path / "new" / "compare", **asked)


def test_a_variant_that_fails_is_left_out(home, found, monkeypatch):
    failed = home / "killed" / "position=none,token_dropout=0.5-seed-1"
    monkeypatch.setattr(compare, "train_all", lambda *given: {failed: "it diverged"})
    less = compared(home / "reviews.csv", home / "killed")
    assert [one.name for one in less.variants] == [one.name for one in found.variants[:2]]
    left_out = "position=none, token_dropout=0.5 is left out: seed 1 failed: it diverged"
    assert left_out in less.notes


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("accuracy", 0.0, 1.0), ("bleu", 0.0, 1.8), ("wer", 0.0, 1.8), ("loss", 0.0, 1.8)],
)
def test_intervals_stay_on_the_scale_of_their_score(name, low, high):
    found = mean_score(name, [Score(0.1, 0.0, 0.9), Score(0.9, 0.1, 1.0)])
    assert (found.value, found.low) == (0.5, low)
    assert found.high > high if high > 1 else found.high == high


def test_a_single_seed_keeps_its_own_interval():
    assert mean_score("accuracy", [Score(1.0, 0.9, 1.0)]) == Score(1.0, 0.9, 1.0)
