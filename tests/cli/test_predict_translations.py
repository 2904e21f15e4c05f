"""`glassformer predict` with a run that writes: answers, scores, words, searches, alignment."""

import json
import math
import os
import re
import sys

import pytest
from small_files import trained
from small_translator import sentences, translation, translator

from glassformer.cli import main, predict as command
from glassformer.errors import GlassformerError
from glassformer.explaining.views import alignment_picture
from glassformer.runs.run import Run
from glassformer.tasks.shared.generation import GenerationOptions

SOURCE = "wet old cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return translator(tmp_path_factory)


@pytest.fixture(scope="module")
def run(folder):
    return Run(folder)


@pytest.fixture
def predict(folder, capsys):
    """Calls the command; what it prints on both sides, once it went well."""

    def call(*words, code=0):
        assert main(["predict", str(folder), *map(str, words)]) == code
        return capsys.readouterr()

    return call


@pytest.fixture
def values(predict):
    """The same as the values of JSON, a text each."""

    def call(*words):
        return [json.loads(line) for line in predict("--json", *words).out.splitlines()]

    return call


def test_a_text_of_which_nothing_is_known_is_not_translated(predict, values):
    out, err = predict("雪 ☃", SOURCE)
    assert out.splitlines()[0] == "?"
    assert "no answer (?) to 1 of 2 inputs: no" in err
    unknown, known = values("雪 ☃", SOURCE)
    assert (unknown["unknown"], unknown["prediction"]) == (True, None)
    assert "unknown" not in known


def test_a_file_of_texts_is_answered_in_order_whatever_their_lengths(run, predict, tmp_path):
    texts = [*sentences(67, seed=8), "", "red"]
    (tmp_path / "many.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    lines = predict(f"@{tmp_path / 'many.txt'}").out.splitlines()
    said = [line.split("\t")[0] for line in lines]
    assert len(said) == len(texts)
    assert said[::11] == [run.predict(text).text for text in texts[::11]]
    assert said[67:] == ["", run.predict("red").text]
    right = sum(text == translation(source) for source, text in zip(texts, said, strict=True))
    assert right > 50


# More answers, and their scores


def test_alternatives_come_below_the_answer_with_falling_scores(predict, values):
    [found] = values("--alternatives", 5, SOURCE)  # more than the usual beam is wide
    texts = [found["prediction"], *(other["text"] for other in found["alternatives"])]
    scores = [found["score"], *(other["score"] for other in found["alternatives"])]
    assert len(set(texts)) == 6
    assert scores == sorted(scores, reverse=True)
    first, *others = predict("--alternatives", 5, SOURCE).out.splitlines()
    assert first.split("\t")[0] == texts[0]
    assert [line.split("\t")[0] for line in others] == [f"  or {text}" for text in texts[1:]]
    assert values(SOURCE)[0]["alternatives"] == []


def test_scores_are_those_of_the_tokens(predict, values):
    [found] = values(SOURCE)
    scores = [token["log_probability"] for token in found["tokens"]]
    assert [token["piece"] for token in found["tokens"]] == [*found["prediction"].split(), "<end>"]
    assert found["token_mean"] == pytest.approx(math.exp(sum(scores) / len(scores)))
    assert found["probability"] == pytest.approx(math.exp(sum(scores)))
    answer, below = predict("--scores", SOURCE).out.splitlines()
    assert answer.split("\t")[0] == found["prediction"]
    shown = [piece.rsplit(" ", 1) for piece in below.strip().split(" | ")]
    assert [piece for piece, _ in shown] == [token["piece"] for token in found["tokens"]]
    assert [float(score) for _, score in shown] == pytest.approx(scores, abs=6e-4)


def test_what_each_token_might_have_been_is_in_the_values(values):
    [found] = values("--set", "decode.alternatives=3", SOURCE)
    for token in found["tokens"]:
        likeliest = [other["log_probability"] for other in token["instead"]]
        assert len(likeliest) == 3
        assert likeliest == sorted(likeliest, reverse=True)
        assert likeliest[0] >= token["log_probability"] - 1e-6


def test_scores_show_what_could_be_said_instead_of_each_token(predict, values):
    asked = ("--set", "decode.alternatives=3", "--scores", SOURCE)
    [found] = values(*asked)
    _, *lines = predict(*asked).out.splitlines()
    for token, line in zip(found["tokens"], lines, strict=True):
        itself, *others = line.strip().split(" or ")
        assert itself == f"{token['piece']} {token['log_probability']:.3f}"
        wanted = [other for other in token["instead"] if other["id"] != token["id"]]
        assert others == [f"{one['piece']} {one['log_probability']:.3f}" for one in wanted]
        assert len(others) >= 2


def test_alternatives_of_tokens_are_shown_without_asking_for_scores(predict):
    asked = predict("--set", "decode.alternatives=3", SOURCE).out
    assert asked == predict("--scores", "--set", "decode.alternatives=3", SOURCE).out
    assert asked != predict(SOURCE).out


# Words, and other searches


def test_answers_begin_as_asked(values):
    [found] = values("--prefix", "neu rot", SOURCE)
    assert found["prediction"].startswith("neu rot")


def test_a_forbidden_word_is_in_no_answer(values):
    [usual] = values(SOURCE)
    word = usual["prediction"].split()[0]
    [found] = values("--without", word, "--without", "rot", "--alternatives", 3, SOURCE)
    for text in (found["prediction"], *(other["text"] for other in found["alternatives"])):
        assert not {word, "rot"} & set(text.split())


def test_required_words_are_in_every_answer(values):
    [found] = values("--with", "neu", "--with", "rot", "--alternatives", 3, SOURCE)
    for text in (found["prediction"], *(other["text"] for other in found["alternatives"])):
        assert {"neu", "rot"} <= set(text.split())


def test_samples_follow_from_the_seed_and_the_text_alone(values, tmp_path):
    sampling = ("--set", "decode.method=sample", "--set", "decode.sample.temperature=3.0")
    texts, file = sentences(7, seed=3), tmp_path / "texts.txt"
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    alone = [values(*sampling, text)[0]["prediction"] for text in texts]
    assert [found["prediction"] for found in values(*sampling, f"@{file}")] == alone
    assert len({*alone}) > 1
    other = values(*sampling, "--set", "decode.sample.seed=1", f"@{file}")
    assert [found["prediction"] for found in other] != alone


def test_writing_stops_before_a_text_to_stop_at(values):
    [usual] = values(SOURCE)
    last = usual["prediction"].split()[-1]
    [found] = values("--set", f"decode.stop={last}", "--set", "decode.method=greedy", SOURCE)
    assert found["prediction"].strip() == usual["prediction"].removesuffix(last).strip()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "decode.beem.width=3"], "unknown setting 'decode.beem'; did you mean"),
        (["--set", "model.dim=3"], "--set model.dim=3: a trained run takes decoding settings"),
        (["--set", "decode=3"], "--set decode=3: a trained run takes decoding settings only"),
        (
            ["--set", "decode.method=greedy", "--alternatives", "2"],
            "greedy decoding gives no alternatives; use",
        ),
        (["--prefix", "Hund"], "the model cannot write 'Hund': some of it is in no training text"),
        (["--with", " "], "the model cannot write '': it is empty; leave it out"),
        (["--with", "rot", "--without", "rot"], "the required word 'rot' contains the forbidden"),
        (["--with", "rot", "--set", "decode.method=greedy"], "required words need beam search"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(predict, options, told):
    out, err = predict(*options, SOURCE, code=1)
    assert out == ""
    assert err.startswith("glassformer: ")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "option",
    [
        ["--scores"],
        ["--align"],
        ["--picture", "a.png"],
        ["--prefix", "a"],
        ["--with", "a"],
        ["--without", "a"],
        ["--set", "decode.method=greedy"],
    ],
    ids=lambda option: option[0],
)
def test_a_classifier_refuses_the_options_of_a_translator(tmp_path_factory, option, capsys):
    classifier = trained(tmp_path_factory) / "run"
    capsys.readouterr()
    assert main(["predict", str(classifier), "a great film", *option]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(
        f"glassformer: {option[0]} is an option of (\\w+, )*translate(, \\w+)*, but the job of "
        f"this run is classify; leave it out\n",
        err,
    )


def test_python_asks_for_the_same(run):
    found = run.predict(SOURCE, alternatives=2, forbidden=("nass",))
    assert len(found.details["alternatives"]) == 2
    assert "nass" not in found.text.split()
    assert run.predict(SOURCE).details["alternatives"] == []  # options are not kept
    with pytest.raises(GlassformerError, match="alternatives must be 0 or more, got -1"):
        GenerationOptions(alternatives=-1)


# Alignment


def test_an_alignment_is_drawn_below_the_answer_and_goes_into_json(predict, values):
    [found] = values("--align", SOURCE)
    assert found["alignment"]["source"] == SOURCE.split()
    assert found["alignment"]["target"] == found["prediction"].split()
    assert len(found["alignment"]["links"]) == len(found["prediction"].split())
    answer, head, *lines = predict("--align", SOURCE).out.splitlines()
    assert answer.split("\t")[0] == found["prediction"]
    assert head.split() == SOURCE.split()
    assert [line.split()[0] for line in lines] == found["prediction"].split()
    assert "\x1b" not in "".join(lines)


def test_a_picture_is_drawn_of_one_text(predict, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "a.png"
    assert SOURCE in predict("--picture", path, SOURCE).out
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("inputs", [[], ["@texts.txt"], ["one", "two"]])
def test_a_picture_of_several_texts_is_refused(predict, inputs):
    _, err = predict("--picture", "a.png", *inputs, code=2)
    assert "--picture takes exactly one INPUT, not a file" in err


def test_without_a_font_the_terminal_still_shows_the_alignment(predict, tmp_path, monkeypatch):
    def lacking(text):
        raise GlassformerError(f"no font on this machine has {text[0]}; install one that has")

    monkeypatch.setattr(alignment_picture, "families_for", lacking)
    out, err = predict("--picture", tmp_path / "a.png", "早 old cat", code=1)
    assert out.splitlines()[1].split() == ["早", "old", "cat"]
    assert err == "glassformer: no font on this machine has 早; install one that has\n"


def test_an_alignment_needs_a_place_to_be_drawn_to_before_anything_is_written(predict, tmp_path):
    out, err = predict("--picture", tmp_path / "a.gif", SOURCE, code=1)
    assert out == ""
    assert "a picture must end in .png, .svg, .pdf" in err


# A conversation


@pytest.fixture
def terminal(monkeypatch):
    """Types bytes into a terminal that stands for standard input."""
    keyboard, screen = os.openpty()
    with os.fdopen(screen, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield lambda typed: os.write(keyboard, typed)
    os.close(keyboard)


def test_on_a_terminal_every_line_is_answered_until_ctrl_d(run, predict, terminal):
    terminal(f"{SOURCE}\n@ red\n".encode() + b"\x04")
    out, err = predict()
    said = [line.split("\t")[0] for line in out.splitlines()]
    assert said == [run.predict(SOURCE).text, run.predict("@ red").text]
    assert err == "One text per line; Ctrl-D to quit.\n\n"


def test_a_line_that_cannot_be_answered_does_not_end_the_conversation(
    run, predict, terminal, monkeypatch
):
    answers = command._answer

    def strict(run, options, shown, texts):
        if [placed.given for placed in texts] == ["red"]:
            raise GlassformerError("not red; type something else")
        answers(run, options, shown, texts)

    monkeypatch.setattr(command, "_answer", strict)
    terminal(f"red\n{SOURCE}\n".encode() + b"\x04")
    out, err = predict()
    assert out == f"{run.predict(SOURCE).text}\n"
    assert "glassformer: not red; type something else\n" in err


def test_a_line_with_a_zero_byte_is_a_line_of_its_own(run, predict, terminal):
    terminal(f"red\0\n{SOURCE}\n".encode() + b"\x04")
    said = [line.split("\t")[0] for line in predict().out.splitlines()]
    assert said == [run.predict("red\0").text, run.predict(SOURCE).text]


def test_bytes_that_are_no_utf_8_are_told(predict, terminal):
    terminal(b"d\xe9j\xe0\n\x04")
    out, err = predict()
    assert out == ""
    assert "glassformer: this line is not UTF-8; set the terminal to UTF-8\n" in err


def test_explain_takes_decoding_settings_too(folder, run, capsys):
    words = ("explain", str(folder), SOURCE, "--method", "occlusion", "--json")
    assert main([*words]) == 0
    assert json.loads(capsys.readouterr().out)["beam"]
    assert main([*words, "--set", "decode.method=greedy"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["beam"] == []
    assert found["prediction"] == run.predict(SOURCE, set="decode.method=greedy").text
    assert main([*words, "--set", "model.dim=3"]) == 1
    assert "a trained run takes decoding settings only" in capsys.readouterr().err
    with pytest.raises(GlassformerError, match="translate has no option sett, only"):
        run.explain(SOURCE, sett="decode.method=greedy")
