"""`glassformer explain` shows explanations in the terminal and writes them to files."""

import json
import os

import pytest
import torch
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.cli import main
from glassformer.errors import GlassformerError
from glassformer.explaining import looking
from glassformer.explaining.looking import attention_of
from glassformer.explaining.methods import METHODS

TWO_LAYERS = "model.encoder.depth=2"
TEXT = "The film was great, with some people who said: a lovely town."


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explained")
    data = write_reviews(folder / "reviews.csv", length=6)
    with quickly():
        return learn(data, folder / "run", TWO_LAYERS, steps=1)


def test_every_method_works_with_a_pool_that_attends(tmp_path):
    pool = "model.pool=attention"
    run = learn(
        write_reviews(tmp_path / "reviews.csv"), tmp_path / "run", pool, "model.ngrams=no", steps=1
    )
    for method in METHODS:
        found = run.explain(TEXT, method=method)
        assert not found.influence.requires_grad
    pool = found.attention[-1]
    assert (pool.name, pool.queries, len(pool.keys)) == ("pool", ("label",), pool.weights.shape[2])


def explain(run, *options):
    return main(["explain", str(run.folder.path), TEXT, "--device", "cpu", *map(str, options)])


def test_the_terminal_shows_labels_words_and_the_asked_attention(run, capsys):
    assert explain(run, "--layer", "0", "--head", "1", "--method", "occlusion") == 0
    out = capsys.readouterr().out
    assert {"good", "bad"} >= {line.split()[0] for line in out.splitlines()[:2]}
    assert "for " in out
    assert "layer 0, head 1" in out


def test_an_explanation_prints_as_on_the_command_line(run, capsys):
    explain(run, "--method", "occlusion")
    assert f"{run.explain(TEXT, method='occlusion')}\n" == capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".html", ".json", ".svg"])
def test_an_explanation_is_written_as_its_name_says(run, suffix, tmp_path, capsys):
    path = tmp_path / f"a{suffix}"
    assert explain(run, "--out", path) == 0
    assert capsys.readouterr() == ("", f"wrote {path}\n")
    text = path.read_text(encoding="utf-8")
    begins = {".html": "<!DOCTYPE html>", ".json": "{", ".svg": "<?xml"}
    assert text.startswith(begins[suffix])
    if suffix == ".json":
        values = json.loads(text)
        assert "".join(values["pieces"]) == TEXT
        rows = torch.tensor(values["attention"][0]["weights"]).sum(-1)
        torch.testing.assert_close(rows, torch.ones_like(rows), atol=2e-3, rtol=0)


def test_an_explanation_is_written_from_python_as_well(run, tmp_path):
    found = run.explain(TEXT, method="attention", out=tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<?xml")
    found.save(str(tmp_path / "a.html"), layer="0", head=1)
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == found.as_page(layer="0", head=1)
    with pytest.raises(GlassformerError, match=r"an explanation is written as \.html, "):
        run.explain(TEXT, out="a.txt")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--out", "a.gif"), "an explanation is written as .html, .json, .png, .svg, .pdf, got"),
        (("--out", "none/a.html"), "none: no such folder; create it first"),
        (("--out", "none/a.png"), "none: no such folder for the picture; create it first"),
        (("--head", "1", "--json"), "JSON has every layer and head; leave out --layer and --head"),
        (("--layer", "9"), "there is no layer '9'; choose from "),
        (("--head", "99"), "there is no head 99; choose from 0 to "),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_line(run, options, told, capsys):
    assert explain(run, *options) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"glassformer: {told}")
    assert error.count("\n") == 1


def test_attention_that_is_too_large_is_left_out_from_the_first_layer_on(run, monkeypatch):
    subject = run.explainer.job.subject(run.model, TEXT)
    every, none = attention_of(subject)
    assert none == 0
    monkeypatch.setattr(looking, "MOST_WEIGHTS", every[-1].weights.numel())
    kept, left_out = attention_of(subject)
    assert [one.name for one in kept] == [every[-1].name]
    assert left_out == len(every) - 1
    assert run.explain(TEXT).notes == (
        f"The attention of the first {left_out} layers is left out: the input is long.",
    )


@pytest.mark.parametrize("name", ["x.html", "x.json", "x.png"])
def test_a_place_that_cannot_be_written_is_refused_before_a_run_is_opened(
    name, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken" / name).mkdir(parents=True)
    assert main(["explain", "no run", TEXT, "--out", f"taken/{name}"]) == 1
    assert capsys.readouterr().err == f"glassformer: taken/{name}: is a folder; name a file\n"
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert main(["explain", "no run", TEXT, "--out", f"closed-{name}"]) == 1
    assert capsys.readouterr().err == (
        f"glassformer: closed-{name}: cannot be written, its folder may not be written to; name "
        f"another folder, or check its permissions\n"
    )
