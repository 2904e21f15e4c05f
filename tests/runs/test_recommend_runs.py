"""A run of recommend, from a table of ratings to lists, through the command line and Python."""

import csv
import json
import re

import numpy as np
import pytest
from small_ratings import ratings

import glassformer
from glassformer.cli import main
from glassformer.data.catalog.films import WORDS, planted
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs import log
from glassformer.tasks.recommend.questions import Questions
from glassformer.tasks.recommend.reporter import SimpleRecommenders


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["user", "item", "rating", "time"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that learned something, in a folder with its table."""
    folder = tmp_path_factory.mktemp("recommend")
    table = write(folder / "ratings.csv", ratings())
    command = ["train", "recommend", table, "--steps", "120", "--run", str(folder / "run")]
    settings = ("task.features=3", "train.optimiser.lr=3e-2", "data.batch_tokens=64")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "open_board", lambda folder, step: None)
        words = [f"--set={one}" for one in (*settings, "machine.device=cpu")]
        assert main([*command, "--quiet", *words]) == 0
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return glassformer.load(folder / "run", device="cpu")


def test_a_report_has_all_scores_beside_simple_recommenders(folder):
    report = json.loads((folder / "run" / "report.json").read_text())
    ours, baseline, *_ = report["scores"].values()
    assert ours.keys() == baseline.keys() == {"rmse", "ndcg", "hit_rate", "coverage"}
    assert ours["ndcg"]["low"] < ours["ndcg"]["value"] < ours["ndcg"]["high"] < 1
    assert 0 < ours["rmse"]["value"] < 1.5
    assert ours["rmse"]["reason"] == "too few users for an interval: 23, of at least 30"
    rivals = ["popularity", "item mean", "user and item biases"]
    assert list(report["scores"])[2:] == rivals
    assert "over 23 users, RMSE is" in report["verdict"][0]
    [table] = [one for one in report["tables"] if one["title"].startswith("The strongest simple")]
    assert [row[0] for row in table["rows"]] == ["RMSE", "NDCG@10", "hit rate@10"]
    assert any("Intervals and comparisons go by user" in note for note in report["notes"])
    assert any(name.startswith("matrix factorisation (rank ") for name in report["scores"])


def test_predict_lists_the_next_items_of_a_user_that_are_new_to_them(folder, run, capsys):
    assert main(["predict", str(folder / "run"), "u4", "--alternatives", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    known = {row["item"] for row in ratings() if row["user"] == "u4"}
    items = [one["item"] for one in found["items"]]
    assert found["prediction"] == items[0]
    assert len(items) == 3
    assert not known & {*items}
    assert [one["rating"] for one in found["items"]] == sorted(
        (one["rating"] for one in found["items"]), reverse=True
    )
    assert found["known_user"]
    assert 0 <= found["confidence"] <= 1
    shown = run.predict("u4", alternatives=1)
    assert shown.below[0].startswith(f"  or {items[1]}\t")
    assert main(["predict", str(folder / "run"), "u4", "u5"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2  # one answer a line


def test_the_baseline_stays_in_the_run_and_answers_as_it_was_scored(run):
    simple = SimpleRecommenders(run.folder.open_task(run.config, run.folder.data))
    _, _, fitted = simple.best_least_squares()
    user = run.predictor.task.names.users.find("u4")
    taken = run.predictor.task.histories.of(user)
    scores = fitted(Questions.next_item(user, taken))
    scores[taken.items] = -np.inf
    found = run.predict("u4", baseline=True, alternatives=1)
    assert found.text == run.predictor.task.names.items.names[scores.argmax()]
    assert len(found.details["items"]) == 2
    new = run.predict("me", likes=["item 2", "item 4"], baseline=True)
    assert int(new.text.split()[1]) % 2 == 0
    near = run.predict("item 6", similar=True, baseline=True, alternatives=2)
    assert [int(one["item"].split()[1]) % 2 for one in near.details["items"]] == [0, 0, 0]
    with pytest.raises(GlassformerError, match="the baseline has no option picture"):
        run.predict("u4", baseline=True, picture="items.png")


def test_a_user_who_was_not_there_is_served_by_the_items_they_name(run):
    even = run.predict("me", likes=["item 2", "ITEM 4"]).details["items"]
    odd = run.predict("me", likes=["item 3", "item 2=1.5"]).details["items"]
    best = [int(found[0]["item"].split()[1]) % 2 for found in (even, odd)]  # users like one parity
    assert best == [0, 1]
    assert not run.predict("me", likes="item 2").details["known_user"]
    disliked = [one["item"] for one in run.predict("u4").details["items"]]
    changed = run.predict("u4", likes=[f"{disliked[0]}=1.5"])
    assert changed.details["known_user"]
    assert changed.details["rating"] < run.predict("u4").details["rating"] + 1e-6
    assert run.predict(["", "u1"])[0].empty


def test_items_are_similar_to_those_that_the_same_users_like(run):
    found = run.predict("item 6", similar=True, alternatives=3)
    assert [int(one["item"].split()[1]) % 2 for one in found.details["items"]] == [0, 0, 0, 0]
    assert found.details["similarity"] <= 1.0001


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("u99", {}, "'u99' is no user of the training rows; did you mean 'u9'. For a new one, gi"),
        ("Zoë", {}, "'Zoë' is no user of the training rows; for a new one, give items that"),
        ("me", {"likes": ["itm 2"]}, "'itm 2' is no item of the training rows; did you mean 'item"),
        ("me", {"likes": ["Ω"]}, "'Ω' is no item of the training rows; name one as it is there"),
        ("me", {"likes": ["item 2=9"]}, "ratings go from 1.5 to 4.5; give one of these"),
        ("u1", {"likes": ["item 2"], "similar": True}, "about an item, .* about a user; leave out"),
        ("u1", {"alternatives": -1}, "alternatives must be 0 or more, got -1"),
        (7, {}, "predict takes a user or a list of users, got 7; give a user"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_one_line(run, given, options, message):
    with pytest.raises(GlassformerError, match=message):
        run.predict(given, **options)


def test_a_user_who_took_everything_is_told_so(run):
    with pytest.raises(GlassformerError, match="'me' has taken all items there are; nothing is"):
        run.predict("me", likes=[f"item {n}" for n in range(14)])


def test_a_picture_shows_the_first_two_features_with_names(run, tmp_path):
    pytest.importorskip("matplotlib")
    run.predict("u4", picture=tmp_path / "items.svg")
    drawn = (tmp_path / "items.svg").read_text()
    assert "<!-- item " in drawn
    assert "<!-- first feature -->" in drawn


def test_evaluate_knows_users_and_items_and_says_what_it_does_not_know(folder, capsys):
    rows = [row for row in ratings() if row["split"] == "test"]
    rows += [{"user": "new", "item": "item 1", "rating": 4.5, "time": t} for t in (1,)]
    rows += [{"user": "u2", "item": "unheard", "rating": 9, "time": 1}]
    table = write(folder / "more.csv", rows)
    assert main(["evaluate", str(folder / "run"), table, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rows"] == len(rows) - 1
    notes = " ".join(found["notes"])
    assert "Left out: 1 rating outside the scale from 1.5 to 4.5" in notes
    assert "1 held-out row of users that training does not have (new)" in notes


def test_settings_of_the_other_method_are_refused(folder, capsys):
    command = ["plan", "recommend", str(folder / "ratings.csv")]
    for settings, message in (
        (["model.decoder.dim=32"], "model.decoder.dim has no effect with task.method = factors"),
        (["task.max_length=9"], "task.max_length has no effect with task.method = factors"),
        (["task.method=sasrec", "task.features=3"], "task.features has no effect with task.method"),
        (["task.method=sasrec", "task.feedback=explicit"], "sasrec predicts items, not ratings"),
        (["task.feedback=implicit", "task.liked=3"], "task.liked has no effect with task.feedback"),
        (["task.feedback=explicit", "task.loss=bpr"], "task.loss has no effect with task.feedback"),
        (["data.form=padded"], "data.form has no effect on recommend; leave it out"),
        (["task.lowest=5", "task.highest=1"], "task.lowest must be below task.highest"),
    ):
        assert main([*command, *(f"--set={one}" for one in settings)]) == 1
        assert message in capsys.readouterr().err
    assert main([*command, "--size", "base"]) == 1
    assert "--size base has no effect with task.method = factors; leave" in capsys.readouterr().err


def test_the_doctor_examines_ratings(folder, capsys):
    rows = [*ratings(), {"user": "u1", "item": "item 3", "rating": "?", "time": 5}]
    assert main(["doctor", write(folder / "faulty.csv", rows), "--job", "recommend"]) in (0, 1)
    said = capsys.readouterr().out
    assert "for recommend" in said
    assert re.search(r"1 row with a rating that is not a number", said)
    assert "Interactions" in said


@pytest.mark.full
def test_a_planted_taste_is_recovered_with_its_genres(tmp_path):
    run = glassformer.train("recommend", "films", run=tmp_path / "run", quiet=True, device="cpu")
    model, numbers = planted(), {name: n for n, name in enumerate(planted().names)}
    noise = [
        model.expected[int(row["user"].split()[1]) - 1, numbers[row["item"]]] - row["rating"]
        for row in Samples.open(tmp_path / "run" / "data").of("test")
    ]
    [ours, *_] = run.report["scores"].values()
    assert ours["rmse"]["value"] < 1.03 * np.sqrt(np.mean(np.square(noise)))
    places = run.task.method.features(run.model)[:, :2]  # as in the picture
    names = run.task.names.items.names
    genres = np.array([list(WORDS).index(model.genres[numbers[name]]) for name in names])
    centres = np.stack([places[genres == n].mean(0) for n in range(len(WORDS))])
    nearest = np.square(places[:, None] - centres).sum(2).argmin(1)
    assert (nearest == genres).mean() > 0.97


def titled(number):
    return "Same Name" if number in (3, 4) else f"The Film of {number}"


@pytest.fixture(scope="module")
def captioned(tmp_path_factory):
    """A run of a table with titles beside the ids of the items."""
    rows = [
        {"user": row["user"], "movieId": row["item"][5:], "rating": row["rating"]}
        | {"title": titled(int(row["item"][5:])), "name": f"called {row['user']}"}
        for row in ratings(times=False)
    ]
    options = {
        "steps": 2,
        "device": "cpu",
        "quiet": True,
        "run": tmp_path_factory.mktemp("x") / "r",
    }
    return glassformer.train("recommend", rows, set="task.features=3", **options)


def test_items_are_shown_by_their_titles_in_predictions_and_reports(captioned):
    assert captioned.folder.intake()["columns"]["caption"] == "title"
    run = glassformer.load(captioned.folder.path, device="cpu")
    found = run.predict("u4", alternatives=20)
    names = [one["item"] for one in found.details["items"]]
    assert [one["caption"] for one in found.details["items"]] == [titled(int(n)) for n in names]
    shown = [found.text, *(line[5:].partition("\t")[0] for line in found.below)]
    expected = [f"Same Name [{n}]" if int(n) in (3, 4) else titled(int(n)) for n in names]
    assert shown == expected
    [table] = [one for one in run.report["tables"] if one["title"] == "Some rows"]
    assert all(row[1].startswith(("The Film", "Same Name [")) for row in table["rows"])


def test_items_are_found_by_title_and_by_id(captioned):
    for likes in ("The Film of 7", "the film of  7", "7"):
        taken = captioned.predict("nobody", likes=[likes], alternatives=20).details["items"]
        assert "7" not in {one["item"] for one in taken}
    assert captioned.predict("Same Name [3]", similar=True).details["items"]
    with pytest.raises(GlassformerError, match="did you mean 'The Film of 7'"):
        captioned.predict("nobody", likes=["The Flm of 7"])


@pytest.mark.parametrize(
    ("columns", "role", "column"),
    [
        (("user_id", "title", "rating"), "item", "title"),  # no other column for the item
        (("user_id", "movie_id", "rating", "name"), "caption", None),  # that of the user
    ],
)
def test_a_title_is_no_caption_if_it_is_the_item_or_goes_with_users(
    tmp_path, columns, role, column
):
    cells = {"user_id": lambda n: n // 6, "title": lambda n: f"film {n % 6}"}
    cells |= {"movie_id": lambda n: n % 6, "rating": lambda n: 1 + n % 5}
    cells |= {"name": lambda n: f"person {n // 6}"}
    rows = [{name: str(cells[name](n)) for name in columns} for n in range(60)]
    found = glassformer.doctor(rows, job="recommend", quiet=True)
    (by_role,) = found.columns.values()
    assert by_role.get(role) == column
    assert ("caption" in by_role) is False
