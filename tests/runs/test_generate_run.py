"""A run of `generate`, from a text file to a report, the command line and another run."""

import json
from dataclasses import replace

import pytest

from glassformer import load, train
from glassformer.cli import main
from glassformer.runs import measuring
from glassformer.runs.fit import answers_on
from glassformer.runs.measuring import measure, score_at
from glassformer.training.setup import TrainSetup
from glassformer.training.weights import read_tensors

TEXT = "".join(f"{n} green bottles hanging on the wall,\nand if one fell:\n" for n in range(300))
SMALL = (
    "model.decoder.dim=16",
    "model.decoder.depth=1",
    "model.decoder.attention.heads=2",
    "data.batch_tokens=512",
    "task.max_length=32",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bottles")
    (folder / "bottles.txt").write_text(TEXT)
    options = {"set": SMALL, "steps": 8, "device": "cpu", "quiet": True}
    return train("generate", folder / "bottles.txt", run=folder / "run", **options)


def test_its_report_has_bits_per_byte(run):
    scores = run.report["scores"]["this model"]
    assert {*scores} == {"bits_per_byte", "perplexity", "loss"}
    assert 0 < scores["bits_per_byte"]["value"] < 9
    for score in scores.values():
        assert (score["interval"], score["reason"]) == (None, "one document: no interval")
    why = "bits per byte, perplexity, loss: one document: no interval."
    assert why in run.report["notes"]
    assert run.config.data.tokenizer.kind == "characters"


def test_its_report_counts_what_it_was_compared_on_and_chosen_by(run, tmp_path):
    verdict = run.report["notes"][0]
    assert verdict.startswith("No verdict against the baseline (n-gram): over 1 document, ")
    assert verdict.endswith(" (one document: no comparison).")
    (tmp_path / "some.txt").write_text(TEXT[:999])
    options = {"set": SMALL, "steps": 1, "device": "cpu", "quiet": True}
    few = train("generate", tmp_path / "some.txt", run=tmp_path / "run", **options)
    assert "Only 2 validation windows selected the model" in " ".join(few.report["notes"])


def test_predict_streams_one_prompt_and_writes_lines_for_many(run, capsys, tmp_path):
    settings = ["--set", "decode.max_length=9", "--set", "decode.method=greedy"]
    folder = str(run.folder.path)
    assert main(["predict", folder, "one\ntwo", *settings]) == 0
    streamed = capsys.readouterr().out
    assert streamed.startswith("one\ntwo")
    (tmp_path / "prompts.txt").write_text("one\ngreen\n")
    assert main(["predict", folder, f"@{tmp_path}/prompts.txt", "--json", *settings]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["prediction"] for one in found] == [
        one["input"] + one["continuation"] for one in found
    ]
    assert main(["predict", folder, "one", "--alternatives", "2", *settings]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if " or " in line]) == 9


def test_it_is_evaluated_on_other_text_and_continued_from(run, tmp_path):
    (tmp_path / "other.txt").write_text(TEXT[:999].upper())
    found = run.evaluate(tmp_path / "other.txt")
    assert found.scores["bits_per_byte"].value > run.report["scores"]["this model"]["loss"]["value"]
    options = {"set": ("task.max_length=16",), "steps": 2, "device": "cpu", "quiet": True}
    again = train(
        "generate",
        run.folder.path.parent / "bottles.txt",
        run=tmp_path / "again",
        from_=run.folder.path,
        **options,
    )
    assert again.config.model.decoder.dim == 16
    assert load(again.folder.path, device="cpu").predict("10 green").text.startswith("10 green")


def test_characters_without_a_token_are_reported_and_do_not_change_the_bytes(run, tmp_path, capsys):
    text = "Москва слезам не верит.\n" * 99
    (tmp_path / "russian.txt").write_text(text, encoding="utf-8")
    remark = "of the characters{} have no token of this model: 'М', 'о', 'с', 'к', 'в'"
    assert main(["evaluate", str(run.folder.path), str(tmp_path / "russian.txt")]) == 0
    assert "83.3% " + remark.format("") in " ".join(capsys.readouterr().out.split())
    options = {"set": SMALL[-2:], "steps": 1, "device": "cpu", "from_": run.folder.path}
    later = train("generate", tmp_path / "russian.txt", run=tmp_path / "later", **options)
    note = f"% {remark.format(' of the train split')}"
    assert note in " ".join(capsys.readouterr().err.split())
    assert any(note in one for one in later.report["notes"])
    spelt = ("data.tokenizer.kind=bytes", *SMALL)
    bottles = run.folder.path.parent / "bottles.txt"
    options = {"set": spelt, "steps": 1, "device": "cpu", "quiet": True}
    other = train("generate", bottles, run=tmp_path / "other", **options)
    found = run.evaluate(tmp_path / "russian.txt", against=other).comparison["bits_per_byte"]
    assert found.wins + found.losses + found.ties == 1  # document


def test_a_run_of_another_kind_is_continued_from_as_it_is(run, tmp_path):
    data, options = run.folder.path.parent / "bottles.txt", {"steps": 1, "device": "cpu"}
    kind = ("model.decoder=gpt2", "model.decoder.dim=16", "task.max_length=16")
    first = train("generate", data, run=tmp_path / "first", set=kind, quiet=True, **options)
    given = {"run": tmp_path / "later", "from_": first.folder.path, "set": kind[2:]}
    later = train("generate", data, quiet=True, **given, **options)
    assert later.config.model == first.config.model
    assert first.config.model.decoder.attention.kv_heads is None  # by default, it has a number


def test_a_classifier_starts_from_it_as_an_encoder(run, tmp_path):
    rows = [f"{n} bottles,{'few' if n < 5 else 'many'}\n" for n in range(40)]
    (tmp_path / "rows.csv").write_text("".join(["text,label\n", *rows]))
    options = {"steps": 1, "device": "cpu", "quiet": True, "from_": run.folder.path}
    found = train("classify", tmp_path / "rows.csv", run=tmp_path / "run", **options)
    assert found.config.model.encoder == run.config.model.decoder
    learned = read_tensors(run.folder.model)
    begun = read_tensors(found.folder.initial)
    assert begun["encoder.norm.weight"].equal(learned["decoder.norm.weight"])
    assert begun["frontend.table.weight"].equal(learned["tokens.table.weight"])


def setup_of(run):
    return TrainSetup(run.config.train, run.config.data, run.machine, run.config.seed)


def test_a_comparison_also_scores_longer_windows(run):
    found = measure(run, "valid", ())
    assert [*found.lengths] == [1, 2, 4]
    assert found.lengths[1] == found.scores["bits_per_byte"]
    config = replace(run.config, task=replace(run.config.task, max_length=64))
    task = run.folder.open_task(config, run.folder.data)
    assert task.lengths("valid").max() == 64
    expected = answers_on(task, run.model, setup_of(run), "valid").values()["bits_per_byte"]
    assert found.lengths[2].value == pytest.approx(expected)


def test_a_model_that_cannot_read_so_far_has_no_score_there(run, monkeypatch):
    def ended(*given):
        raise ValueError("positions end here")

    monkeypatch.setattr(measuring, "answers_on", ended)
    assert score_at(run, run.config, setup_of(run), "valid") is None
