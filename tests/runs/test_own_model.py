"""A model of a person's own: trained, resumed, reported, used, and reopened with its code only."""

from dataclasses import replace

import pytest
import torch
from quick import quickly
from small_runs import same, weights, write_reviews
from small_translators import translate, write_pairs
from torch import nn

import glassformer
from glassformer import GlassformerError
from glassformer.cli import main
from glassformer.runs.own_model import refuse_other_model
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.training.weights import read_tensors


class Bag(nn.Module):
    """The mean of the embeddings of a text."""

    def __init__(self, task, dim=7):
        super().__init__()
        self.table = nn.Embedding(task.vocabulary, dim)
        self.to_class = nn.Linear(dim, task.classes)

    def forward(self, tokens, *, layout, noise=None):
        x = self.table(tokens) * layout.real[..., None]
        return self.to_class(x.sum(1) / layout.lengths[:, None])


def learn(data, run, model=Bag, **given):
    usual = {"steps": 40, "quiet": True, "set": {"train.optimiser.lr": 0.1, "train.save_every": 10}}
    return glassformer.train("classify", data, run=run, model=model, **usual | given)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_reviews(tmp_path_factory.mktemp("own") / "reviews.csv")


@pytest.fixture(scope="module")
def run(data):
    with quickly():
        return learn(data, data.parent / "run")


def test_it_is_trained_reported_and_used_like_any_other(run, data):
    assert run.predict("the film was superb").text == "good"
    assert run.predict("the film was awful").text == "bad"
    assert run.report["scores"]["this model"]["accuracy"]["value"] == 1.0
    assert run.evaluate(data).scores["accuracy"].value == 1.0
    assert run.config.own_model == "Bag"
    assert "model=Bag" in run.folder.command()


def test_a_run_shows_the_tokens_that_it_reads(run, without_shape_hook):
    assert run.tokenize("the Film was unheard of") == [
        "the",
        "film",
        "was",
        "<unknown>",
        "<unknown>",
    ]
    with pytest.raises(GlassformerError, match="tokenize takes a text, got 3; give a str"):
        run.tokenize(3)


def test_it_is_opened_with_its_code_only(run, tmp_path, capsys):
    path = run.folder.path
    again = glassformer.load(path, model=Bag)
    assert again.predict("a slow town") == run.predict("a slow town")
    told = f"{path}: its model is your own, Bag, and a run folder holds no code; give it in Python"
    for verb in (glassformer.load, glassformer.resume):
        with pytest.raises(GlassformerError, match=told):
            verb(path)
    assert main(["predict", str(path), "a film"]) == 1
    assert told in capsys.readouterr().err
    with pytest.raises(
        GlassformerError, match=r"--|its model is your own, Bag; give that"
    ) as error:
        glassformer.train("classify", path, from_=path)
    assert "--" not in str(error.value)


def test_what_it_is_made_of_is_not_explained(run):
    with pytest.raises(GlassformerError, match="its model is your own, and explanations look insi"):
        run.explain("a superb film")


def test_another_model_is_refused_by_the_weights_that_differ(run):
    path = run.folder.path
    with pytest.raises(GlassformerError, match=r"table.weight has shape \(\d+, 7\), the model exp"):
        glassformer.load(path, model=lambda task: Bag(task, dim=5)).predict("a film")
    with pytest.raises(GlassformerError, match=r"unexpected weight table\.weight|missing weight"):
        glassformer.load(path, model=nn.Linear(2, 3)).predict("a film")


def test_an_interrupted_run_goes_on_to_the_same_weights(data, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    kept = []

    def model(task):
        kept.append(torch.random.get_rng_state())
        return Bag(task)

    with quickly():
        learn(data, tmp_path / "peace", model, steps=12)
        with monkeypatch.context() as patch:
            patch.setattr("glassformer.runs.fit.keep_weights", stop)
            with pytest.raises(KeyboardInterrupt):
                learn(data, tmp_path / "stopped", model, steps=12)
        done = glassformer.resume(tmp_path / "stopped", model=model, quiet=True)
    assert same(weights(tmp_path / "peace"), weights(tmp_path / "stopped"))
    assert done.predict("a superb film").text in ("good", "bad")
    assert len(kept) > 2


def test_a_module_begins_with_its_own_weights_and_stays_as_it_is(data, run, tmp_path):
    torch.manual_seed(5)
    module = Bag(run.task)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with quickly():
        made = learn(data, tmp_path / "run", module, steps=1)
    assert same(before, module.state_dict())
    initial = read_tensors(made.folder.initial)
    assert same(before, initial)
    assert not same(before, weights(tmp_path / "run"))
    with quickly():
        later = learn(data, tmp_path / "later", from_=tmp_path / "run", steps=1)
    assert later.config.origin == str(tmp_path / "run")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (nn.Linear(2, 2), r"Linear does not do what classify needs \(TypeError: .*'layout'"),
        (lambda task: 3, "must return a module, got int"),
    ],
)
def test_a_model_that_does_not_fit_is_refused_before_training(data, tmp_path, model, message):
    with pytest.raises(GlassformerError, match=message):
        learn(data, tmp_path / "run", model)
    assert not (tmp_path / "run").exists()


def test_what_is_no_model_is_refused(data, run, tmp_path, without_shape_hook):
    with pytest.raises(GlassformerError, match=r"a function of the task that builds one, got 3"):
        learn(data, tmp_path / "run", 3)
    with pytest.raises(GlassformerError, match="pretrain=yes trains another model first"):
        learn(data, tmp_path / "run", set={"pretrain": "yes"})
    with pytest.raises(GlassformerError, match="was trained with a model of glassformer"):
        refuse_other_model(replace(run.config, own_model=None), run.folder.path, Bag)


class Twice(nn.Module):
    """An encoder of one's own: two layers for each position alone."""

    def __init__(self, dim):
        super().__init__()
        self.first, self.second = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, *, layout, mask=None):
        return x + self.second(self.first(x).relu())


def own_translator(task):
    model = glassformer.build_transformer(
        task.config.model, vocabulary=task.target_vocabulary, source=task.vocabulary
    )
    model.encoder = Twice(task.config.model.encoder.dim)
    return model


def test_a_translator_with_an_encoder_of_ones_own_writes(tmp_path):
    data = write_pairs(tmp_path / "pairs.tsv")
    with quickly():
        run = translate(data, tmp_path / "run", "model.share=false", model=own_translator)
    again = glassformer.load(tmp_path / "run", model=own_translator)
    assert again.predict("abcd") == run.predict("abcd")
    assert "encoder.second.weight" in weights(tmp_path / "run")
    with pytest.raises(GlassformerError, match="Linear does not do what translate needs"):
        translate(data, tmp_path / "other", model=nn.Linear(2, 3))


def test_its_cost_is_planned(data, monkeypatch):
    monkeypatch.setattr(ClassifyReporter, "timed_baseline_seconds", lambda self: 0.0)
    found = glassformer.plan("classify", data, model=Bag, steps=5, quiet=True)
    assert {"table", "to_class"} == found.parts.keys()
