"""recommend: vectors and biases, implicit feedback, the next item by a decoder, new users."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from small_jobs import everything, job_of, taught
from small_ratings import ITEMS, USERS, ratings

from glassformer.core.layout import Layout
from glassformer.data.samples import SPLITS
from glassformer.errors import GlassformerError
from glassformer.tasks.recommend.answers import ranked
from glassformer.tasks.recommend.baselines import Biases, TrainingRows
from glassformer.tasks.recommend.factors import FactorModel, turned
from glassformer.tasks.recommend.histories import NOTHING, History
from glassformer.tasks.recommend.least_squares import LeastSquares
from glassformer.tasks.recommend.new_users import NewUsers
from glassformer.tasks.recommend.questions import QuestionBatch, Questions
from glassformer.tasks.recommend.reporter import RecommendReporter, SimpleRecommenders

CPU = torch.device("cpu")
STACK = {"dim": 12, "depth": 1, "attention": {"heads": 3}}


def recommender(folder, rows=None, **task):
    """The task over some rows."""
    values = {"task": task, "model": {"decoder": STACK}, "data": {"batch_tokens": 64}}
    return job_of("recommend", folder, ratings() if rows is None else rows, **values)


def shaken(model, spread=0.7):
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data.normal_(0, spread, generator=generator)
    return model


@pytest.fixture(scope="module")
def rated(tmp_path_factory):
    return recommender(tmp_path_factory.mktemp("rated"), features=3, penalty=0.01)


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    return recommender(tmp_path_factory.mktemp("taken"), ratings(rated=False), features=3)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("read")
    return recommender(folder, ratings(rated=False), method="sasrec", max_length=7)


def test_a_score_is_the_product_of_two_vectors_and_all_biases():
    model = shaken(FactorModel(5, 7, 3, mean=2.5))
    users, items = torch.tensor([4, 0]), torch.tensor([[1, 6], [3, 3]])
    scores, sizes = model(users, items, layout=Layout.packed(torch.ones(2, dtype=torch.long)))
    for row, user in enumerate(users.tolist()):
        for column, item in enumerate(items[row].tolist()):
            dot = model.users.weight[user] @ model.items.weight[item]
            biases = model.user_bias.weight[user, 0] + model.item_bias.weight[item, 0]
            torch.testing.assert_close(scores[row, column], 2.5 + biases + dot)
    every = model.of_users(model.user_table())
    torch.testing.assert_close(every[users[:, None], items], scores)
    norms = [model.users.weight[0], model.items.weight[3]]
    norms += [model.user_bias.weight[0], model.item_bias.weight[3]]
    torch.testing.assert_close(sizes[1], sum(one.square().sum() for one in norms))


def test_ratings_are_learned_by_squared_error_and_a_penalty(rated):
    model, batch = shaken(rated.model()), everything(rated)
    scores, sizes = rated.forward(model, batch)
    loss = rated.loss((scores, sizes), batch)
    right = ((scores[:, 0] - batch.ratings) ** 2 + 0.01 * sizes).sum()
    torch.testing.assert_close(loss.total, right)
    assert loss.count == len(batch.ratings) == 9 * USERS
    apart = rated.divergence((scores, sizes), (scores + 2, sizes), batch)
    torch.testing.assert_close(apart.total, torch.tensor(2.0) * len(scores))


@pytest.mark.parametrize("kind", ["softmax", "bpr"])
def test_items_that_are_taken_learn_to_score_above_others(tmp_path, kind):
    rows = ratings(rated=False)
    job = recommender(tmp_path, rows, loss=kind, negatives=5, penalty=0.0)
    model, batch = shaken(job.model()), everything(job, epoch=0)
    scores, sizes = job.forward(model, batch)
    right = 0.0
    for row, items in zip(scores, batch.items.tolist(), strict=True):
        others = torch.stack([s for s, item in zip(row, items, strict=True) if item != items[0]])
        if kind == "softmax":
            right += F.cross_entropy(torch.cat([row[:1], others])[None], torch.tensor([0]))
        else:
            right += -F.logsigmoid(row[0] - others).mean()
    torch.testing.assert_close(job.loss((scores, sizes), batch).total, right)
    assert job.goal == "ndcg"


def test_other_items_follow_from_the_epoch_and_the_row(taken):
    whole, part = everything(taken, epoch=3), taken.batch("train", np.array([5, 2]), 3)
    assert part.items.tolist() == whole.items[[5, 2]].tolist()
    assert part.items.tolist() != taken.batch("train", np.array([5, 2]), 4).items.tolist()
    assert 0 <= whole.items.min() <= whole.items.max() == ITEMS - 1


def test_the_vector_of_a_new_user_is_the_likeliest_one():
    model = shaken(FactorModel(31, 11, 3, mean=3.0))
    history = History(np.array([1, 5, 8]), np.array([4.0, 2.0, 5.0]))
    table = model.user_table().detach().double().numpy()
    precision = np.linalg.inv(np.cov(table.T) + 1e-3 * np.eye(4))

    def surprise(user, rated):
        scores = model.of_users(torch.tensor(user, dtype=torch.float32)[None])[0]
        scores = scores.detach().double().numpy()
        prior = (user - table.mean(0)) @ precision @ (user - table.mean(0)) / 2
        if rated:
            return prior + ((scores[history.items] - history.ratings) ** 2).sum() / (2 * 0.25)
        logs = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
        return prior - logs[history.items].sum()

    for rated, deviation in ((True, 0.5), (False, None)):
        biases = model.mean + model.item_bias.weight[:, 0]
        fit = NewUsers.of(model.user_table(), model.items.weight, biases, deviation)
        found = fit(history)
        for direction in np.eye(4):
            for step in (-0.1, 0.1):
                assert surprise(found, rated) < surprise(found + step * direction, rated)
        np.testing.assert_allclose(fit(NOTHING), table.mean(0))


def test_rows_are_asked_with_what_was_known_before_them(rated):
    found, held_out = rated.found, rated.held_out("test")
    numbers = held_out.numbers
    assert len(numbers) == USERS
    assert rated.lengths("test").tolist() == [1] * USERS
    [asked] = held_out.questions(np.array([4]))
    user = found.users[numbers[4]]
    earlier = [n for n in np.flatnonzero(found.users == user) if n != numbers[4]]
    assert asked.history.items.tolist() == found.items[earlier].tolist()
    [asked] = rated.held_out("valid").questions(np.array([4]))
    assert len(asked.history.items) == 9
    assert rated.where("test", 4) == rated.samples[int(numbers[4])]["where"]


def test_what_is_known_is_not_recommended_but_may_be_the_answer():
    history = History(np.array([3, 1]), np.array([np.nan, np.nan]))
    asked = Questions(0, True, history, np.array([2, 3, -1, 4]), np.zeros(4), np.arange(4), True)
    seen = [asked.seen(n).tolist() for n in range(4)]
    assert seen == [[3, 1], [1, 2], [3, 1, 2, 3], [3, 1, 2, 3]]
    mask = QuestionBatch([asked], CPU).seen(5)
    assert mask.nonzero()[:, 1].tolist() == [1, 3, 1, 2, 1, 2, 3, 1, 2, 3]


def test_ranks_are_among_what_is_not_known_with_half_of_the_ties_before():
    scores = torch.tensor([[5.0, 3, 4, 3, 1], [5, 3, 4, 3, 1], [5, 3, 4, 3, 1]])
    seen = torch.tensor([[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0]], dtype=torch.bool)
    ranks, lists = ranked(scores, seen, torch.tensor([1, 4, -1]))
    assert ranks.tolist() == [2.5, 5, 6]
    assert [{*row} for row in lists.tolist()] == [{2, 1, 3, 4, -1}, {0, 1, 2, 3, 4}, {0, 1, 4, -1}]
    broken = torch.full((1, 5), torch.nan)
    assert ranked(broken, seen[:1], torch.tensor([1]))[0].isnan().all()


def test_a_decoder_answers_many_questions_as_one_by_one(read):
    torch.manual_seed(0)
    model = read.model().eval()
    held_out = read.held_out("test")
    other = next(held_out.questions(np.arange(1)))
    history = History(np.array([7, 3]), np.zeros(2))  # all that is read fits into a window
    items = np.array([4, -1, 9, 2])
    several = Questions(0, True, history, items, np.zeros(4), np.arange(4), True)
    together = read.method.scores(model, QuestionBatch([other, several], CPU))
    assert together.shape == (5, ITEMS)
    for place in range(4):
        before = history.then(items[:place], np.zeros(place))
        [alone] = read.method.scores(model, QuestionBatch([Questions.next_item(0, before)], CPU))
        torch.testing.assert_close(together[1 + place], alone)


def test_histories_are_read_in_windows_each_with_the_item_before_it(read):
    sequences = read.sequences()
    assert sequences.lengths.tolist() == [7, 2] * USERS
    batch = read.batch("train", np.array([0, 1]), 0)
    history = read.histories.of(0).items[:9] + 1
    assert batch.labels.tolist() == history.tolist()
    assert batch.ids.tolist() == [0, *history[:-1].tolist()]
    assert read.where("train", 0) == "history 1 of the train split"


@pytest.mark.parametrize("name", ["rated", "taken", "read"])
def test_every_method_learns_who_likes_what(name, request):
    job = request.getfixturevalue(name)
    model = taught(job, 150 if name == "rated" else 60, rate=3e-2)
    with torch.no_grad():
        answers = job.answers(model, [job.batch("test", np.arange(USERS), None)])
    if name == "rated":
        assert answers.values()["rmse"] < 0.5
        mean = SimpleRecommenders(job).simplest()["item mean"]
        assert SimpleRecommenders(job).answers(mean, "test").values()["rmse"] > 1.2
    else:
        assert answers.values()["hit_rate"] == 1.0  # fewer than ten items are left
    assert {*answers.scores()} <= {*RecommendReporter.score_names}
    assert answers.rows.tolist() == [*range(USERS)]


def test_a_user_who_was_not_there_is_known_by_half_of_their_rows(tmp_path):
    rows = ratings()
    for row in rows:
        if row["user"] in ("u3", "u4"):
            row["split"] = "test"
    job = recommender(tmp_path, rows, features=3, penalty=0.01)
    remarks = RecommendReporter(job).remarks()
    assert "22 held-out rows of users that training does not have (u3, u4): half" in remarks[0]
    model = taught(job, 150, rate=3e-2)
    answers = job.answers(model, [job.batch("test", np.arange(len(job.lengths("test"))), None)])
    new = answers.users >= len(job.names.users)
    assert new.sum() == 12
    job.method.deviation = 0.3
    again = job.answers(model, [job.batch("test", np.arange(len(job.lengths("test"))), None)])
    assert np.sqrt(np.mean((again.predicted - again.ratings)[new] ** 2)) < 0.7


def test_items_that_were_not_there_count_as_missed_and_are_told(tmp_path):
    rows = [*ratings(), {"user": "u1", "item": "new", "rating": 5, "time": 9e9, "split": "test"}]
    job = recommender(tmp_path, rows, lowest=1.0, highest=5.0)
    [remark] = RecommendReporter(job).remarks()
    assert remark == (
        "1 held-out row of items that training does not have (new): they cannot be recommended, "
        "and count as missed"
    )
    answers = job.answers(job.model(), [job.batch("test", np.arange(USERS + 1), None)])
    [missed] = np.flatnonzero(answers.ranks == ITEMS + 1)
    assert answers.ratings[missed] == 5
    assert 1 <= answers.predicted[missed] <= 5


def test_a_later_row_of_a_pair_replaces_the_earlier_one_and_is_told(tmp_path):
    rows = ratings()
    again = {**rows[3], "rating": 1.0, "time": 1e9}
    job = recommender(tmp_path, [*rows, again, {**rows[5], "time": -7}], lowest=1.0, highest=5.0)
    [remark] = RecommendReporter(job).remarks()
    assert "Left out: 2 rows with a later row of the same user and item, first" in remark
    assert "row 4" in remark
    train = job.samples.rows("train")
    assert len(train) == 9 * USERS
    assert len(rows) in train
    assert len(rows) + 1 not in train


def test_ratings_outside_the_scale_are_left_out_and_told(tmp_path):
    rows = [*ratings(), {"user": "u1", "item": "item 3", "rating": 77, "time": 5}]
    job = recommender(tmp_path, rows, lowest=1.0, highest=5.0)
    [remark] = RecommendReporter(job).remarks()
    assert "Left out: 1 rating outside the scale from 1 to 5, first" in remark
    assert job.settings.highest == 5.0


def test_a_rating_far_from_all_others_is_named_where_no_scale_is_given(tmp_path):
    job = recommender(
        tmp_path, [*ratings(), {"user": "u1", "item": "item 3", "rating": 77, "time": 5}]
    )
    [remark] = RecommendReporter(job).remarks()
    assert remark == (
        "1 rating far from all others: 77; if that is a slip, give the scale with task.lowest and "
        "task.highest, which leaves such rows out"
    )


@pytest.mark.parametrize(
    ("rows", "task", "message"),
    [
        (ratings(times=False), {"method": "sasrec"}, "not all rows have a time; add a column"),
        (ratings(rated=False), {"feedback": "explicit"}, "has no rating, but ratings are to be"),
        ([{**row, "user": "me"} for row in ratings()], {}, "have only one user, 'me'; give rows"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused_in_one_line(tmp_path, rows, task, message):
    with pytest.raises(GlassformerError, match=message):
        recommender(tmp_path, rows, **task)


def test_rows_without_ratings_are_implicit_and_so_are_equal_ratings(rated, taken, tmp_path):
    assert rated.settings.feedback == "explicit"
    assert taken.settings.feedback == "implicit"
    likes = [{**row, "rating": 1} for row in ratings()]
    assert recommender(tmp_path, likes).settings.feedback == "implicit"


def test_least_squares_recovers_a_planted_table():
    rng = np.random.default_rng(1)
    table = (
        3
        + rng.normal(size=(29, 1))
        + rng.normal(size=17)
        + rng.normal(size=(29, 2)) @ rng.normal(size=(2, 17))
    )
    users, items = np.nonzero(rng.random(table.shape) < 0.8)
    rows = TrainingRows(users, items, table[users, items], table.shape, explicit=True)
    found = LeastSquares.fit(rows, rank=2, ridge=1e-4)
    scores = np.stack([found(Questions.next_item(user, NOTHING)) for user in range(29)])
    hidden = np.ones(table.shape, dtype=bool)
    hidden[users, items] = False
    assert np.sqrt(np.mean((scores - table)[hidden] ** 2)) < 0.2
    history = History(items[users == 5], table[5, items[users == 5]])
    np.testing.assert_allclose(found(Questions.next_item(-1, history)), scores[5], atol=0.05)


class LibrarySolver:
    """Stands in for that of `implicit`: the best factors of the table itself."""

    def __init__(self, *, factors, **options):
        self.factors = factors

    def fit(self, taken, show_progress):
        assert not show_progress
        u, sizes, v = np.linalg.svd(taken.toarray() / taken.max())
        self.user_factors = u[:, : self.factors] * sizes[: self.factors]
        self.item_factors = v[: self.factors].T


@pytest.mark.parametrize("library", [None, LibrarySolver], ids=["own", "library"])
def test_least_squares_of_implicit_feedback_prefers_what_similar_users_took(library, monkeypatch):
    installed = library and SimpleNamespace(AlternatingLeastSquares=library)
    monkeypatch.setitem(sys.modules, "implicit.als", installed)
    monkeypatch.setitem(sys.modules, "implicit", installed)
    users, items = np.nonzero(np.add.outer(np.arange(20), np.arange(12)) % 2 == 0)
    hidden = (users == 4) & (items == 6)
    rows = TrainingRows(users[~hidden], items[~hidden], np.ones((~hidden).sum()), (20, 12), False)
    found = LeastSquares.fit(rows, rank=2, ridge=0.02)
    assert found(Questions.next_item(4, NOTHING)).argsort()[-6:].max() == 10
    assert found(Questions.next_item(4, NOTHING))[6] > 0.5
    new = found(Questions.next_item(-1, History(np.array([1, 3]), np.full(2, np.nan))))
    assert {*new.argsort()[-6:].tolist()} == {1, 3, 5, 7, 9, 11}


def test_features_are_turned_so_that_the_first_sets_scores_apart_most():
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(31, 5)), rng.normal(size=(13, 5))
    found = turned(users, items)
    centred = (users - users.mean(0)) @ items.T
    np.testing.assert_allclose(found @ found.T, centred.T @ centred / 31, atol=1e-9)
    sizes = np.linalg.norm(found, axis=0)
    assert (np.diff(sizes) < 0).all()


def test_the_splits_of_histories_are_kept(rated):
    splits = np.asarray(rated.histories.splits[0]).tolist()
    assert splits == [0] * 9 + [SPLITS.index("valid"), SPLITS.index("test")]


def test_biases_of_users_and_items_are_told_apart():
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 50, 4000), rng.integers(0, 30, 4000)
    chosen = (users % 2 == items % 2) | (rng.random(4000) < 0.1)  # parities go together
    users, items = users[chosen], items[chosen]
    of_users, of_items = rng.normal(0, 1, 50), rng.normal(0, 1, 30)
    of_users[::2] += 2.0  # whom the items of their parity owe nothing
    ratings = 3 + of_users[users] + of_items[items]
    found = Biases.fit(TrainingRows(users, items, ratings, (50, 30), explicit=True), 0.01)
    predicted = found.mean + found.users[users] + found.items[items]
    assert np.sqrt(np.mean((predicted - ratings) ** 2)) < 0.25
    assert np.corrcoef(found.items, of_items)[0, 1] > 0.95
