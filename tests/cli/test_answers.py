"""What is known of a prediction before it is complete is shown at once."""

import json
import sys
from dataclasses import replace

from glassformer.cli.answers import Show
from glassformer.tasks.predictor import Partial, Prediction
from glassformer.terminal import Terminal

PREDICTION = Prediction("two words", 0.5, {}, below=["below"])


def test_a_text_is_printed_as_it_comes_and_the_line_is_that_of_one_that_comes_at_once(capsys):
    show = Show(confidence=True)
    show.show("input", PREDICTION)
    at_once = capsys.readouterr().out
    for text in ("two", " words"):
        show.show_partial(Partial(text=text))
        assert capsys.readouterr().out == text
    show.show("input", PREDICTION)
    assert "two words" + capsys.readouterr().out == at_once == "two words\t0.500\nbelow\n"
    show.show("input", PREDICTION)
    assert capsys.readouterr().out == at_once


def test_a_line_is_the_answer_and_nothing_else_unless_asked(capsys):
    Show().show("input", replace(PREDICTION, below=()))
    assert capsys.readouterr() == ("two words\n", "")


def test_inputs_of_which_nothing_is_known_get_no_answer_and_are_counted(capsys):
    known = replace(PREDICTION, below=())
    unknown = known.without_answer("no word was seen")
    show = Show()
    for one in (unknown, known, unknown):
        show.show("input", one)
    show.sum_up()
    show.sum_up()  # says it once
    told = "no answer (?) to 2 of 3 inputs: no word was seen"
    out, err = capsys.readouterr()
    assert out == "?\ntwo words\n?\n"
    assert err == f"glassformer: {told}; --json has the model's guess\n"
    Show(as_json=True).show("input", unknown)
    values = json.loads(capsys.readouterr().out)
    guess = {"prediction": "two words", "confidence": 0.5}
    assert values == {
        "input": "input",
        "prediction": None,
        "confidence": 0.0,
        "unknown": True,
        "reason": "no word was seen",
        "guess": guess,
    }


def test_an_empty_input_has_an_empty_answer_that_is_marked(capsys):
    empty = Prediction("", 0.0, {}, empty=True)
    Show(abstain=0.5).show("", empty)
    assert capsys.readouterr().out == "\n"
    Show(as_json=True).show("", empty)
    values = json.loads(capsys.readouterr().out)
    assert values == {"input": "", "prediction": "", "confidence": 0.0, "empty": True}


def test_a_text_that_may_turn_out_doubtful_is_not_printed_before_it_is_complete(capsys):
    for least, expected in ((0.9, "?"), (0.4, "two words")):
        show = Show(abstain=least, confidence=True)
        show.show_partial(Partial(text="two words"))
        show.show("input", PREDICTION)
        assert capsys.readouterr().out == f"{expected}\t0.500\nbelow\n"


def test_a_text_that_was_printed_is_followed_by_a_question_mark_if_nothing_of_it_is_known(capsys):
    show = Show()
    show.show_partial(Partial(text="two words"))
    show.show("input", PREDICTION.without_answer("no word was seen"))
    assert capsys.readouterr().out == "two words ?\n"


def test_a_remark_does_not_break_a_line_that_has_begun(capsys, monkeypatch):
    remarked, remark = replace(PREDICTION, note="was short"), "glassformer: 'input' was short\n"
    monkeypatch.setattr("sys.stderr", sys.stdout)  # as on a terminal
    show = Show(confidence=True)
    show.show("input", remarked)
    assert capsys.readouterr().out == f"{remark}two words\t0.500\nbelow\n"
    show.show_partial(Partial(text="two words"))
    show.show("input", remarked)
    assert capsys.readouterr().out == f"two words\t0.500\nbelow\n{remark}"


def test_a_line_that_has_begun_ends_if_no_more_comes(capsys):
    show = Show(confidence=True)
    show.show_partial(Partial(text="two"))
    show.end()
    show.end()
    assert capsys.readouterr().out == "two\n"


def test_as_json_each_part_of_a_text_is_a_line(capsys):
    show = Show(as_json=True)
    show.show_partial(Partial(text="two", details={"start": 0.5}))
    show.show("input", PREDICTION)
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"text": "two", "start": 0.5}
    assert last["prediction"] == "two words"


def test_how_much_of_an_input_was_read_is_shown_on_a_terminal_only(capsys, monkeypatch):
    show = Show(confidence=True)
    show.show_partial(Partial(done=0.25))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(Terminal, "is_terminal", True)
    show.show_partial(Partial(done=0.25))
    show.show_partial(Partial(done=0.5))
    show.show("input", PREDICTION)
    shown = capsys.readouterr()
    assert "50%" in shown.err
    assert shown.out == "two words\t0.500\nbelow\n"
    assert show.bar is None
