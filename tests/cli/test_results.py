"""Tables of scores in the terminal: a column has the same decimals all the way down."""

from glassformer.cli.results import print_table, score_table


def score(value, low, high):
    return {"value": value, "low": low, "high": high}


def shown(scores, capsys):
    print_table(score_table(scores, "Scores"))
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines()]
    return {
        words[1].strip(): [word.strip() for word in words[2:-1]] for words in lines if words[1:]
    }


def test_scores_out_of_a_hundred_have_one_decimal_and_others_three(capsys):
    wide, narrow = score(32.41, 30.4, 34.4), score(0.746, 0.299, 1.267)
    systems = {"a": {"ter": wide, "loss": wide}, "b": {"ter": narrow, "loss": narrow}}
    assert shown(systems, capsys) == {
        "a": ["32.4 [30.4, 34.4]", "32.410 [30.400, 34.400]"],
        "b": ["0.7 [0.3, 1.3]", "0.746 [0.299, 1.267]"],
    }


def test_what_was_not_measured_is_left_blank_and_what_is_no_number_is_a_dash(capsys):
    systems = {"a": {"bleu": score(3.14, 3.0, 4.0)}, "b": {"loss": score(None, None, None)}}
    assert shown(systems, capsys) == {"a": ["3.1 [3.0, 4.0]", ""], "b": ["", "– [–, –]"]}
