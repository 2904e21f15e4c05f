"""Reports: complete, well-formed, self-contained, and safe whatever the data are called."""

import json
import math
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from glassformer.metrics.calibration import Bin
from glassformer.metrics.intervals import Score
from glassformer.metrics.translation import SYMBOL_MEASURES, TEXT_MEASURES
from glassformer.reports import HeatMap, Report, Sections, Sound, Table, write_report
from glassformer.reports.charts import line_chart, ticks
from glassformer.reports.page import page
from glassformer.reports.tables import in_natural_order

VOID = {"meta", "br", "hr", "link", "img", "input"}
SCRIPT = "<script>alert('x')</script>"
NAN, INF = float("nan"), float("inf")


class Checker(HTMLParser):
    """Every tag that opens closes, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def checked(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    for drawing in re.findall(r"<svg.*?</svg>", text, re.S):
        ElementTree.fromstring(drawing)
    return checker


def full_report(name="German", value=0.9):
    return Report(
        title=f"Report on {name}",
        facts={"job": "classify", "seed": 17041, "data": name, "time": None},
        scores={
            name: {"accuracy": Score(value, 0.85, 0.93), "macro_f1": Score(0.8, 0.75, 0.85)},
            "n-grams": {"accuracy": Score(0.87, 0.82, 0.91)},
        },
        curves={
            "training loss": [(step, 2.0 / step) for step in range(1, 40)],
            "validation loss": [(10, 1.0), (20, value)],
            f"validation {name}": [(10, 0.5)],
        },
        tables=[Table(title=name, header=("class", name), rows=[(name, value), (name, 3)])],
        heat_map=HeatMap(
            title="Confusions",
            names=[name, "other"],
            counts=[[5, 2], [0, 0]],
            low=[[2, 0], [0, 0]],
            high=[[7, 4], [0, 0]],
        ),
        reliability=[Bin(0.8, 0.9, 17, 0.85, 0.7)],
        notes=[f"12 rows of {name} were left out."],
    )


def texts_of(report):
    return " ".join(" ".join(checked(page(report)).text).split())


def test_a_score_without_an_interval_has_none_on_the_page():
    report = replace(full_report(), scores={"ours": {"coverage": Score(0.436, 0.436, 0.436)}})
    shown = texts_of(report)
    assert "coverage@10 ours 0.436" in shown
    assert "0.436 – 0.436" not in shown
    assert "[0.436" not in page(report)


def test_everything_in_the_report_is_on_the_page():
    shown = texts_of(full_report())
    for words in (
        "Report on German",
        "17041",
        "accuracy German 0.900 0.850 – 0.930",
        "macro-F1 German 0.800",
        "n-grams 0.870 0.820 – 0.910",
        "training loss validation loss",
        "Confusions",
        "Calibration",
        "12 rows of German were left out.",
    ):
        assert words in shown


def test_what_is_not_the_validation_loss_has_a_chart_of_its_own():
    both = "Training: the mean since the point before"
    assert both in texts_of(full_report())
    curves = full_report().curves
    apart = {"training objective": curves["training loss"], "validation loss": [(10, 0.2)]}
    shown = texts_of(replace(full_report(), curves=apart))
    assert "Training objective training objective" in shown or "Objective training" in shown
    assert both not in shown


def test_the_page_fetches_nothing_and_runs_nothing():
    text = page(full_report())
    tags = checked(text).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object"}
    assert not [a for _, attributes in tags for a in attributes if a in ("src", "href", "onload")]
    assert not re.search(r"url\(|@import|https?:", text)
    assert "prefers-color-scheme: dark" in text
    assert "width=device-width" in text
    assert "@media print" in text


def test_a_class_named_like_a_script_stays_a_name():
    text = page(full_report(SCRIPT))
    assert SCRIPT in "".join(checked(text).text)
    assert "<script" not in text


@pytest.mark.parametrize(
    "name", ["\"quoted\" 'name'", "a & b", "\x00\x1b[31m", "\udc80", "猫 ☃", ""]
)
def test_any_name_is_fit_to_print(name, tmp_path):
    checked(page(full_report(name)))
    write_report(full_report(name), tmp_path)
    json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    checked((tmp_path / "report.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_what_is_no_number_does_not_break_the_page(value, tmp_path):
    report = full_report(value=value)
    assert "nan" not in texts_of(report)
    assert "accuracy German –" in texts_of(report)
    write_report(report, tmp_path)
    values = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert values["scores"]["German"]["accuracy"]["value"] is None
    assert values["curves"]["validation loss"] == [[10, 1.0], [20, None]]


def test_values_survive_the_way_through_json(tmp_path):
    report = full_report()
    write_report(report, tmp_path)
    values = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert values == report.as_values()
    assert values["scores"]["German"]["accuracy"] == {"value": 0.9, "low": 0.85, "high": 0.93}
    assert values["heat_map"]["counts"] == [[5, 2], [0, 0]]
    assert values["facts"]["seed"] == 17041


def test_a_report_with_only_a_title_is_a_page():
    assert texts_of(Report(title="Nothing yet")).endswith("Nothing yet")


def test_many_classes_become_the_pairs_most_confused():
    names = [f"class {n}" for n in range(31)]
    counts = [[10 if a == b else 0 for b in range(31)] for a in range(31)]
    counts[3][5] = 7
    counts[8][2] = 9
    whole = HeatMap(title="C", names=names, counts=counts, low=counts, high=counts)
    shown = texts_of(Report(title="t", heat_map=whole))
    assert shown.endswith("class 8 class 2 9 9 9 0.474 class 3 class 5 7 7 7 0.412")
    square = [row[:30] for row in counts[:30]]
    fewer = HeatMap(title="C", names=names[:30], counts=square, low=square, high=square)
    assert "class 29" in texts_of(Report(title="t", heat_map=fewer))


@pytest.mark.parametrize("classes", [3, 31])
def test_confusions_of_grouped_rows_are_counts_without_intervals(classes):
    names = [f"class {n}" for n in range(classes)]
    counts = [[7 if a == b else 0 for b in range(classes)] for a in range(classes)]
    counts[0][1] = 5
    shown = texts_of(
        Report(title="t", heat_map=HeatMap(title="C", names=names, counts=counts, low=[], high=[]))
    )
    assert "interval" not in shown
    assert "from" not in shown
    assert ("class 0 7 5 0" if classes == 3 else "class 0 class 1 5 0.417") in shown


def test_numbers_stand_to_the_right_and_words_to_the_left():
    rows = [("a", 1, "+0.100", None), ("3", 2.5, "< 0.001", 7)]
    table = Table(title="t", header=("word", "number", "written", "some"), rows=rows)
    tags = checked(page(Report(title="t", tables=[table]))).tags
    kinds = [attributes["class"] for tag, attributes in tags if tag == "td"]
    assert kinds == ["text", "number", "number", "number"] * 2


def test_a_score_has_the_same_decimals_whatever_its_value():
    wide, narrow = Score(32.41, 30.4, 34.4), Score(0.746, 0.299, 1.267)
    systems = {name: {"ter": score, "loss": score} for name, score in (("a", wide), ("b", narrow))}
    text = page(Report(title="t", scores=systems))
    shown = " ".join(" ".join(checked(text).text).split())
    assert "TER a 32.4 30.4 – 34.4 b 0.7 0.3 – 1.3" in shown
    assert "loss a 32.410 30.400 – 34.400 b 0.746 0.299 – 1.267" in shown
    assert 'aria-label="0.7 [0.3, 1.3]"' in text


def test_a_table_with_a_score_names_it_and_keeps_its_decimals():
    header = ("rows", "bleu on the validation split", "ratio", "ser")
    rows = [(3, 0.746, 0.746, 0.5), (5, 32.41, 32.41, None)]
    shown = texts_of(Report(title="t", tables=[Table(title="x", header=header, rows=rows)]))
    assert "rows BLEU on the validation split ratio symbol error rate" in shown
    assert "3 0.7 0.746 0.500 5 32.4 32.4 –" in shown


def test_every_score_of_a_translator_has_one_name():
    measures = {**TEXT_MEASURES, **SYMBOL_MEASURES}
    score, points = Score(0.5, 0.4, 0.6), [(1, 0.5), (2, 0.6)]
    report = Report(
        title="t",
        scores={"ours": dict.fromkeys(measures, score)},
        curves={f"validation {name}": points for name in measures},
    )
    text = page(report)
    names = re.findall(r'<th rowspan="1">(.*?)</th>', text)
    titles = re.findall("<h2>(.*?)</h2>", text)[1:]
    assert names == [
        *("BLEU", "chrF", "TER", "exact answers"),
        *("word error rate", "character error rate", "symbol error rate"),
    ]
    assert titles == [
        *("BLEU", "chrF", "TER", "Exact answers"),
        *("Word error rate", "Character error rate", "Symbol error rate"),
    ]
    assert re.findall("</i>validation (.*?)</span>", text) == names


def test_a_single_point_is_a_dot():
    drawn = ElementTree.fromstring(line_chart({"loss": [(1, 2.0)]}, "loss"))
    assert len(drawn.findall("circle")) == 1
    assert drawn.findall("polyline") == []


def test_points_that_are_no_numbers_leave_a_gap():
    points = [(n, NAN if n == 50 else 1.0 / (n + 1)) for n in range(101)]
    drawn = ElementTree.fromstring(line_chart({"loss": points}, "loss"))
    assert [len(line.get("points").split()) for line in drawn.findall("polyline")] == [50, 50]


def test_curves_without_a_number_are_not_drawn():
    assert line_chart({"loss": [(1, NAN)], "other": []}, "loss") == ""


def test_long_curves_are_thinned_and_keep_their_end():
    points = [(n, math.sin(n / 999)) for n in range(100_003)]
    drawn = line_chart({"loss": points}, "loss")
    last = ElementTree.fromstring(drawn).find("polyline").get("points").split()
    assert len(last) <= 502
    assert float(last[-1].split(",")[0]) == pytest.approx(616, abs=0.1)


def test_every_point_lies_on_the_picture():
    points = [(step, 1e6 * math.cos(step)) for step in range(7, 211)]
    drawn = ElementTree.fromstring(line_chart({"a": points, "b": [(3, -5e6)]}, "loss"))
    width, height = map(float, drawn.get("viewBox").split()[2:])
    for line in drawn.findall("polyline"):
        for place in line.get("points").split():
            x, y = map(float, place.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.913, 0.921, ["0.914", "0.916", "0.918", "0.920"]),
        (0, 12_000, ["0", "5,000", "10,000"]),
        (-1, 1, ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
    ],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert [text for _, text in ticks(low, high, 5)] == expected


def test_a_report_replaces_the_one_before_and_leaves_nothing_else(tmp_path):
    folder = tmp_path / "a" / "run"
    write_report(Report(title="first"), folder)
    write_report(Report(title="second"), folder)
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]
    assert "second" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_write_that_fails_leaves_the_old_report(tmp_path, monkeypatch):
    write_report(Report(title="first"), tmp_path)

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_report(Report(title="second"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]
    assert "first" in (tmp_path / "report.json").read_text(encoding="utf-8")


def test_a_recording_is_played_by_the_page_and_left_out_of_the_json(tmp_path):
    table = Table(title="Worst", header=("listen", "cer"), rows=[(Sound(b"\xff\xfbx"), 0.5)])
    report = Report(title="Sounds", tables=[table])
    found = checked(page(report))
    [player] = [attributes for tag, attributes in found.tags if tag == "audio"]
    assert player["src"] == "data:audio/mpeg;base64,//t4"
    assert ("th", {"class": "text", "scope": "col"}) in found.tags
    write_report(report, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["tables"][0]["rows"] == [[None, 0.5]]


def test_the_page_begins_with_the_verdict_and_the_scores():
    report = replace(full_report(), verdict=["Better than popularity.", "Try more rows."])
    shown = texts_of(report)
    places = [shown.index(words) for words in ("Better than popularity", "Try more", "17041")]
    assert places == sorted(places)
    assert shown.index("macro-F1 German 0.800") < places[-1]
    assert report.as_values()["notes"][:2] == ["Better than popularity.", "Try more rows."]


@pytest.mark.parametrize(
    ("values", "most", "first", "last"),
    [
        ((0.0, 0.0), 1, "0.0", "0.4"),
        ((1.0, 1.0), 1, "0.6", "1.0"),
        ((0.2, 0.98), 1, "0.2", "1.0"),
        ((0.0, 0.0), None, "0.0", "0.4"),
        ((0.01, 4.0), None, "0", "4"),
        ((-1.0, 1.0), None, "-1.0", "1.0"),
    ],
)
def test_the_axis_of_a_chart_does_not_go_beyond_what_a_score_can_be(values, most, first, last):
    drawn = line_chart({"a": list(enumerate(values))}, "a", most=most)
    ticks = re.findall(r'class="tick end"[^>]*>([^<]*)<', drawn)
    assert (ticks[0], ticks[-1]) == (first, last)


def test_classes_are_listed_by_their_numbers():
    names = ["0", "1", "10", "2", "no"]
    counts = [[10 * row + column for column in range(5)] for row in range(5)]
    heat_map = HeatMap(title="x", names=names, counts=counts, low=[], high=counts)
    table = Table(title="By class", header=("class", "rows"), rows=[(name, 1) for name in names])
    found = in_natural_order(Sections(tables=[table], heat_map=heat_map))
    assert [row[0] for row in found.tables[0].rows] == ["0", "1", "2", "10", "no"]
    assert found.heat_map.names == ["0", "1", "2", "10", "no"]
    assert found.heat_map.counts[2] == found.heat_map.high[2] == [30, 31, 33, 32, 34]
    assert found.heat_map.low == []
