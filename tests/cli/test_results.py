"""Tables in the terminal: a column has the same decimals all the way down, a row is one line."""

import json
import shutil

from small_files import trained

from glassformer.cli.results import print_table, row_table, score_table, show_run
from glassformer.reports.wording import BASELINE_WINS
from glassformer.runs.run import Run


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
    assert shown(systems, capsys) == {"a": ["3.1 [3.0, 4.0]", ""], "b": ["", "–"]}


def test_rows_of_the_data_are_one_line_each_and_command_nothing(capsys):
    rows = [["\x1b[2Jeins\n[b]", 0.25, "\x9b31m"], ["zwei", 1.0, "長い"]]
    table = {"title": "Some \x07 rows", "header": ["source\r", "f", "g"], "rows": rows}
    print_table(row_table(table))
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    assert cells == [["\\x1b[2Jeins\\x0a[b]", "0.25", "\\x9b31m"], ["zwei", "1.00", "長い"]]


def test_where_the_baseline_is_better_the_last_line_says_so(tmp_path, tmp_path_factory, capsys):
    copied = tmp_path / "run"
    shutil.copytree(trained(tmp_path_factory) / "run", copied)
    values, told = json.loads((copied / "report.json").read_text()), f"{BASELINE_WINS}: use it."
    (copied / "report.json").write_text(json.dumps(values | {"notes": [told, "A note."]}))
    (copied / "checksums.json").unlink()
    capsys.readouterr()
    show_run(Run(copied), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines.count(told) == 1
    assert lines[-1] == told
    assert lines.index("A note.") < len(lines) - 3
