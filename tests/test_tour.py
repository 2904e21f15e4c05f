"""The tour is true: its code runs, and prints and draws what the chapters show in two languages."""

import ast
import re
import tomllib
from xml.etree import ElementTree

import pytest
from chapters import (
    CODE,
    COLAB,
    HEAD,
    HEADS,
    PICTURES,
    REPOSITORY,
    ROOT,
    SOLUTION,
    TOUR,
    chapters,
    code_of,
    filled,
    head,
    headed,
    looks_alike,
    run,
    stale,
    tidy,
)
from diagram import HEIGHT, PARTS, WIDTH, described, drawing
from test_ideas import complaint, places

CHAPTERS = chapters()
TEXTS = [path for chapter in CHAPTERS for path in chapter.paths]
IN_CHINESE = [path for path in TEXTS if ".zh." in path.name]
IN_CHINESE += [
    TOUR.parents[1] / "README.zh.md",
    *sorted(set(TOUR.parent.rglob("*.zh.md")) - {*TEXTS}),
]
LONGEST = 280  # lines, without the solutions
COLOURS = {"#0072b2", "#d55e00", "#007a5c"}
ENGLISH = ["The question", "The formula", "In code", "What to try", "Where it lives"]
CHINESE = ["问题", "公式", "代码", "试一试", "源码在哪里"]


def name_of(value):
    return value.name if hasattr(value, "name") else value.path.name


def read(path):
    return path.read_text(encoding="utf-8")


def pictures_in(text):
    """The pictures that a chapter shows, without its diagram."""
    return re.findall(r"!\[[^\]]+\]\(pictures/(?!diagram-)([\w.-]+)\)", text)


def without_solutions(text):
    return SOLUTION.sub("", text)


@pytest.mark.parametrize(
    "chapter",
    [pytest.param(c, marks=[pytest.mark.full] if c.is_full else []) for c in CHAPTERS],
    ids=name_of,
)
def test_a_chapter_shows_what_its_code_prints_and_draws(chapter, request):
    request.getfixturevalue("without_shape_hook")  # as a reader runs it
    compare(chapter, full=False)


@pytest.mark.full
@pytest.mark.parametrize(
    "chapter",
    [c for c in CHAPTERS if any(block["full"] for block in CODE.finditer(read(c.path)))],
    ids=name_of,
)
def test_a_chapter_shows_what_its_costly_blocks_print(chapter, request):
    request.getfixturevalue("without_shape_hook")
    compare(chapter, full=True)


def compare(chapter, full):
    results = run(chapter, full=full)
    assert [str(path) for path, _ in stale(chapter, results)] == [], "make docs writes it anew"
    for path in chapter.paths:
        assert sorted(pictures_in(read(path))) == sorted(results.pictures)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_both_languages_have_the_same_code_and_results(chapter):
    english, chinese = map(read, chapter.paths)
    assert code_of(english)
    costly = [[block["full"] for block in CODE.finditer(text)] for text in (english, chinese)]
    assert costly[0] == costly[1]
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
    text = without_solutions(text)
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
    assert numbers == list(range(len(numbers)))
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
    shown |= {chapter.diagram for chapter in CHAPTERS}
    assert {path.name for path in PICTURES.iterdir()} == shown


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_solutions_are_folded_stand_with_the_exercises_and_are_numbered_like_them(path):
    text = read(path)
    folded = SOLUTION.findall(text)
    assert text.count("<details>") == text.count("</details>") == len(folded)
    chinese = ".zh." in path.name
    exercises = text.partition(f"## {(CHINESE if chinese else ENGLISH)[3]}\n")[2]
    exercises = exercises.partition("\n## ")[0]
    assert SOLUTION.findall(exercises) == folded
    tasks = re.findall(r"^(\d)\. ", without_solutions(exercises), flags=re.MULTILINE)
    assert tasks == [str(number) for number in range(1, len(tasks) + 1)]
    word = "答案" if chinese else "Solution"
    solved = re.findall(rf"^<summary>{word} (\d)</summary>$", exercises, flags=re.MULTILINE)
    assert len(solved) == len(folded)
    assert solved == sorted(set(solved) & set(tasks))


def test_both_languages_solve_the_same_exercises():
    for chapter in CHAPTERS:
        solved = [re.findall(r"^<summary>\w+ (\d)", read(path), re.M) for path in chapter.paths]
        assert solved[0] == solved[1], chapter.path.name


@pytest.mark.parametrize("chapter", CHAPTERS, ids=name_of)
def test_the_head_of_a_chapter_shows_the_time_what_to_read_first_colab_and_the_diagram(chapter):
    for path in chapter.paths:
        text, chinese = read(path), ".zh." in path.name
        shown = HEAD.search(text)["head"]
        assert shown == head(chapter, chinese), "make docs writes it anew"
        assert f"({COLAB}{path.stem}.ipynb)" in shown
        assert f"](pictures/{chapter.diagram})" in shown
        assert headed(text, shown) == text
    about = HEADS[chapter.path.stem]
    assert all(number < int(chapter.path.name[:2]) for number in about["after"])
    assert (PICTURES / chapter.diagram).read_text() == drawing(about["parts"])


def test_the_heads_are_those_of_the_chapters_and_all_addresses_come_from_one():
    assert list(HEADS) == [chapter.path.stem for chapter in CHAPTERS]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Repository"] == REPOSITORY
    assert COLAB.startswith("https://colab.research.google.com/github/")
    assert COLAB.endswith("/blob/notebooks/")
    workflow = (ROOT / ".github" / "workflows" / "site.yml").read_text()
    assert "make notebooks" in workflow
    assert "HEAD:notebooks" in workflow


def test_every_part_of_the_diagram_is_lit_in_a_chapter_and_fits_into_it():
    lit = {part for about in HEADS.values() for part in about["parts"]}
    assert lit == set(PARTS)
    for part in PARTS.values():
        assert 0 <= part.x < part.x + part.width <= WIDTH
        assert 0 <= part.y < part.y + part.height <= HEIGHT


def test_the_diagram_colours_the_parts_asked_for_and_no_others():
    def coloured(lit):
        boxes = ElementTree.fromstring(drawing(lit)).iter("{http://www.w3.org/2000/svg}rect")
        return sum(box.get("fill") == "#0072b2" for box in boxes)

    assert [coloured(lit) for lit in ([], ["cache"], ["cache", "score"])] == [0, 1, 2]
    assert described(["score", "mask", "heads"], chinese=False).endswith(
        "about the dot product, the mask and heads"
    )
    assert described(["score", "mask"], chinese=True).endswith("本章讲其中的点积、掩码")
    with pytest.raises(ValueError, match="no part decoder"):
        drawing(["decoder"])


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_a_paper_is_named_with_a_link(path):
    prose = CODE.sub("", read(path))
    cited = r"[A-Z]\w+(?: et al\.| and [A-Z]\w+| 等| 和 [A-Z]\w+)[,，]? ?[(（]?(?:19|20)\d\d"
    named = re.sub(r"\[[^\]]*\]\([^)]*\)(?:\s*[(（][^)）]*[)）])?", "", prose)
    assert re.findall(cited, named) == []


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_pictures_are_drawn_in_three_colours_and_shades_of_grey(path):
    for code in code_of(read(path)):
        used = set(re.findall(r"#[0-9a-f]{6}\b", code))
        grey = {colour for colour in used if colour[1:3] == colour[3:5] == colour[5:7]}
        assert used - grey <= COLOURS | {"#cfe3f1"}  # and a pale blue


@pytest.mark.parametrize("path", sorted((TOUR / "pages").iterdir()), ids=lambda path: path.name)
def test_a_page_made_by_explain_is_small_complete_and_linked_in_both_languages(path):
    assert path.stat().st_size < 300_000
    page = read(path)
    fetched = re.findall(r"""(?:src|href)=["'](?!data:|#)[^"']+|url\((?!["']?data:)[^)]+""", page)
    assert fetched == []
    linking = [
        text for text in TEXTS if re.search(rf"^\[.+\]\(pages/{path.name}\)$", read(text), re.M)
    ]
    assert linking
    assert {text.name.partition(".")[0] for text in linking if ".zh." in text.name} == {
        text.stem for text in linking if ".zh." not in text.name
    }


# How chapters are compared


def test_costly_blocks_are_left_out_and_keep_what_they_show():
    text = "<!-- full -->\n```python\nprint(3)\n```\n\n```text\n3\n```\n"
    assert filled(text, [None]) == text
    assert filled(text, ["4\n"]) == text.replace("text\n3", "text\n4")


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
