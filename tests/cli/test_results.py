"""Tables in the terminal: a column has the same decimals all the way down, a row is one line."""

from glassformer.cli.results import print_table, row_table, score_table


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


def test_rows_of_the_data_are_one_line_each_and_command_nothing(capsys):
    rows = [["\x1b[2Jeins\n[b]", 0.25, "\x9b31m"], ["zwei", 1.0, "長い"]]
    table = {"title": "Some \x07 rows", "header": ["source\r", "f", "g"], "rows": rows}
    print_table(row_table(table))
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells == [["\\x1b[2Jeins\\x0a[b]", "0.25", "\\x9b31m"], ["zwei", "1.00", "長い"]]
