"""The tour is true: its code runs, and prints and draws what the chapters show in two languages."""

import ast
import re

import pytest
from chapters import CODE, PICTURES, TOUR, chapters, code_of, filled, looks_alike, run, stale, tidy
from test_ideas import complaint, places

CHAPTERS = chapters()
TEXTS = [path for chapter in CHAPTERS for path in chapter.paths]
IN_CHINESE = [path for path in TEXTS if ".zh." in path.name]
IN_CHINESE += [
    TOUR.parents[1] / "README.zh.md",
    *sorted(set(TOUR.parent.rglob("*.zh.md")) - {*TEXTS}),
]
LONGEST = 250
ENGLISH = ["The question", "The formula", "In code", "What to try", "Where it lives"]
CHINESE = ["问题", "公式", "代码", "试一试", "源码在哪里"]


def name_of(value):
    return value.name if hasattr(value, "name") else value.path.name


def read(path):
    return path.read_text(encoding="utf-8")


def pictures_in(text):
    return re.findall(r"!\[[^\]]+\]\(pictures/([\w.-]+)\)", text)


@pytest.mark.parametrize(
    "chapter",
    [pytest.param(c, marks=[pytest.mark.full] if c.is_full else []) for c in CHAPTERS],
    ids=name_of,
)
def test_a_chapter_shows_what_its_code_prints_and_draws(chapter, request):
    request.getfixturevalue("without_shape_hook")  # as a reader runs it
    results = run(chapter)
    assert [str(path) for path, _ in stale(chapter, results)] == [], "make docs writes it anew"
    for path in chapter.paths:
        assert sorted(pictures_in(read(path))) == sorted(results.pictures)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_both_languages_have_the_same_code_and_results(chapter):
    english, chinese = map(read, chapter.paths)
    assert code_of(english)
    trees = [[ast.dump(ast.parse(code)) for code in code_of(text)] for text in (english, chinese)]
    assert trees[0] == trees[1]  # but for comments
    printed = [[block["text"] for block in CODE.finditer(text)] for text in (english, chinese)]
    assert printed[0] == printed[1]
    assert pictures_in(english) == pictures_in(chinese)
    formulas = [re.findall(r"\$\$.*?\$\$", text, re.DOTALL) for text in (english, chinese)]
    assert formulas[0] == formulas[1]


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_a_chapter_has_its_parts_and_fits_in_one_sitting(path):
    text = read(path)
    headings = re.findall(r"^## (.+)$", CODE.sub("", text), flags=re.MULTILINE)
    wanted = CHINESE if path.name.endswith(".zh.md") else ENGLISH
    assert [heading for heading in headings if heading in wanted] == wanted
    assert headings[0] == wanted[0]
    assert headings[-1] == wanted[-1]
    assert len(text.splitlines()) <= LONGEST
    assert pictures_in(text) or "```text" in text


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_a_chapter_says_where_its_ideas_live(path):
    lines = read(path).rpartition("\n## ")[2].splitlines()
    named = [place for line in lines for place in places(line)]
    assert named
    assert [why for file, name in named if (why := complaint(file, name))] == []


@pytest.mark.parametrize("path", IN_CHINESE, ids=name_of)
def test_a_token_has_one_name_in_chinese(path):
    fenced, indented, marked = r"^```.*?^```", r"^ {4}.*", r"`[^`\n]*`"
    prose = re.sub(rf"(?ms){fenced}|(?-s:{indented})|{marked}", "", read(path))
    assert not re.search(r"(?i)\btokens?\b|标记|令牌", prose)


def test_every_chapter_has_two_languages_and_a_number_of_its_own():
    assert all(path.exists() for path in TEXTS)
    assert {path.name for path in TEXTS} == {path.name for path in TOUR.glob("[0-9]*.md")}
    numbers = [int(chapter.path.name[:2]) for chapter in CHAPTERS]
    assert numbers == list(range(1, len(numbers) + 1))
    for path in TEXTS:
        assert f"\n# {int(path.name[:2])}. " in "\n" + read(path)


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_links_lead_to_pages_of_the_same_language(path):
    links = re.findall(r"(?<!!)\[[^\]]+\]\(([\w./-]+\.md)", read(path))
    assert [link for link in links if not (path.parent / link).exists()] == []
    if path.name.endswith(".zh.md"):
        chinese = [
            path.parent / link.replace(".md", ".zh.md") for link in links if ".zh." not in link
        ]
        assert [page.name for page in chinese if page.exists()] == []
    else:
        assert [link for link in links if ".zh." in link] == []


@pytest.mark.parametrize("name", ["overview.md", "overview.zh.md"])
def test_the_overview_leads_to_every_chapter_in_order(name):
    links = re.findall(r"^\| \[.*?\]\(([^)]+)\)", read(TOUR / name), flags=re.MULTILINE)
    assert links == [c.paths[".zh." in name].name for c in CHAPTERS]


def test_the_ideas_lead_to_every_chapter():
    ideas = read(TOUR.parent / "dev" / "ideas.md")
    assert [c.path.name for c in CHAPTERS if f"](../tour/{c.path.name})" not in ideas] == []


def test_every_picture_belongs_to_a_chapter():
    shown = {name for path in TEXTS for name in pictures_in(read(path))}
    assert {path.name for path in PICTURES.iterdir()} == shown


# How chapters are compared


TEXT = "Look:\n\n```python\nprint(1)\n```\n\n```text\n2\n```\n\n```python\nx = 1\n```\n\nEnd.\n"


def test_what_is_printed_replaces_what_is_shown():
    shown = filled(TEXT, ["1\n", ""])
    assert shown == TEXT.replace("text\n2\n", "text\n1\n")
    assert filled(shown, ["1\n", ""]) == shown
    assert "x = 1\n```\n\n```text\nnew\n```\n\nEnd." in filled(TEXT, ["1\n", "new\n"])
    assert "text" not in filled(TEXT, ["", ""])


def test_pictures_may_differ_by_a_fraction_of_a_pixel_only():
    picture = '<path d="M 12.34567 -8.98 L 5 7" style="stroke: #0072b2"/><text x="1">0.03</text>'
    assert tidy(f"<metadata>v3.11.2</metadata>\n{picture}") == tidy(picture)
    assert tidy(picture) == picture.replace("12.34567", "12.3").replace("8.98", "9.0")
    assert looks_alike(picture, picture.replace("12.34567", "12.44"))
    assert not looks_alike(picture, picture.replace("12.34567", "13.1"))
    assert not looks_alike(picture, picture.replace("L 5", "L 6"))
    assert not looks_alike(picture, picture.replace("0.03", "0.04"))
    assert not looks_alike(picture, picture.replace("#0072b2", "#d55e00"))
    assert not looks_alike(picture, picture.replace("stroke", "fill"))
