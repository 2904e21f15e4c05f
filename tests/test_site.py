"""The website and the notebooks: every page is on the menu, and links and formulas survive."""

import re

import commands
import docs
import pytest
from chapters import TOUR, chapters, code_of
from typer.main import get_command

from glassformer import PUBLIC
from glassformer.cli.app import app

ROOT = TOUR.parents[1]


def test_the_page_of_commands_has_every_command_and_option():
    page = commands.commands_page()
    assert page == commands.PAGE.read_text(encoding="utf-8"), "make docs writes it anew"
    for name, command in get_command(app).commands.items():
        assert (f"\n## glassformer {name}\n" in page) != command.hidden
    assert "| `--fix` | Write a cleaned copy to this path. |" in page
    assert all(
        line.count("|") - line.count("\\|") == 3 for line in re.findall(r"^\|.+", page, re.M)
    )


def test_a_page_of_the_site_links_to_where_things_are_there():
    pages = pytest.importorskip("pages", reason="needs the extra docs")
    targets = pages.sources()
    assert targets[ROOT / "site" / "home.md"] == "index.md"
    serving = ROOT / "docs" / "operate" / "serving.md"
    text = pages.page(serving, "operate/serving.md", targets)
    assert "](../contributing.md#add-a-job)" in text
    text = pages.page(TOUR / "02-attention.md", "tour/02-attention.md", targets)
    assert "$$" not in text
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in text
    assert code_of(text) == code_of((TOUR / "02-attention.md").read_text(encoding="utf-8"))


def test_chapters_have_their_title_on_top_and_formulas_within_their_sentences():
    pages = pytest.importorskip("pages", reason="needs the extra docs")
    targets = pages.sources()
    texts = [pages.page(c.path, f"tour/{c.path.name}", targets) for c in chapters()]
    assert [text.strip()[:2] for text in texts] == ["# "] * len(texts)
    assert not any(re.search(r'^<math[^>]*"inline"', text, re.M) for text in texts)


def test_solutions_are_folded_and_pages_of_explain_are_shown_where_they_are_linked():
    pages = pytest.importorskip("pages", reason="needs the extra docs")
    for name, shown in [("", "pages/reviews.html"), (".zh", "../../tour/pages/reviews.html")]:
        path = TOUR / f"14-inside{name}.md"
        text = pages.page(path, f"tour/{path.name}", pages.sources())
        assert f'<iframe src="{shown}"' in text
        assert '<details markdown="1">' in text
        assert "<!-- full -->" not in text


PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")])
CHINESE = [page for page in PAGES if ".zh." in page.name]


def anchors(page):
    """What links can name in a page: its headings, as GitHub and the site write them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("guide", CHINESE, ids=lambda guide: guide.name)
def test_a_page_in_chinese_has_an_english_one(guide):
    assert guide.with_name(guide.name.replace(".zh", "")).exists()


def test_only_pages_for_contributors_lead_to_their_rooms():
    for_contributors = {ROOT / "CONTRIBUTING.md", *(ROOT / "docs" / "dev").glob("*.md")}
    for page in {*PAGES} - for_contributors:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"\]\([^)]*\bdev/[\w-]+\.md", text) == [], page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"`[^`\n]*`", "", text)
    named = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text)
    named += [(picture, "") for picture in re.findall(r'<img src="([^"]+)"', text)]
    for link, anchor in named:
        there = page.parent / link if link else page
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), f"{link}#{anchor}"


def test_a_page_in_chinese_can_lead_to_a_section_of_its_english_one():
    pages = pytest.importorskip("pages", reason="needs the extra docs")
    guide = ROOT / "docs" / "guides" / "generating.zh.md"
    text = pages.page(guide, f"guides/{guide.name}", pages.sources())
    assert '<a href="../../results/studies.html#tang-poems">英文页</a>' in text
    assert "](training.zh.md#模型)" in text


def test_the_api_page_has_every_public_name_and_nothing_else():
    pages = pytest.importorskip("pages", reason="needs the extra docs")
    named = re.findall(r"^::: ([\w.]+)$", pages.api_page(), flags=re.M)
    public = [f"{module}.{name}" for module, names in PUBLIC.items() for name in names]
    assert sorted(named) == sorted(public)


def test_the_python_page_names_every_public_name():
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    assert {name for names in PUBLIC.values() for name in names} <= words


def test_the_page_of_the_run_folder_names_every_file_of_the_stored_runs():
    text = (ROOT / "docs" / "reference" / "run-folder.md").read_text(encoding="utf-8")
    named = [re.escape(name).replace(r"\*", ".*") for name in re.findall(r"`([^` ]+?)/?`", text)]
    runs = [path.parent for path in (ROOT / "tests" / "fixtures" / "runs").rglob("command.txt")]
    files = {path.name for run in runs for path in run.iterdir() if path.name != "checkpoints"}
    assert len(files) > 20
    assert [name for name in sorted(files) if not re.fullmatch("|".join(named), name)] == []


def test_the_menu_has_every_page():
    pages = pytest.importorskip("pages", reason="needs the extra docs")
    named = [page for part in pages.navigation() for title in part.values() for page in title]
    paths = {*(ROOT / "docs").rglob("*.md")} - {ROOT / path for path in pages.ELSEWHERE}
    docs = {str(path.relative_to(ROOT / "docs")) for path in paths}
    others = {target for path, target in pages.ELSEWHERE.items() if path.endswith(".md")}
    others.add("reference/api.md")
    in_english = {page for page in docs | others if ".zh." not in page}
    assert {page for page in named if isinstance(page, str)} == in_english


@pytest.mark.parametrize("chapter", chapters(), ids=lambda chapter: chapter.path.name)
def test_a_notebook_has_all_code_of_its_chapter_and_no_results_yet(chapter):
    notebooks = pytest.importorskip("notebooks", reason="needs the extra docs")
    text = chapter.path.read_text(encoding="utf-8")
    cells = list(notebooks.cells(text))
    code = [cell.source + "\n" for cell in cells if cell.cell_type == "code"]
    assert code == code_of(text)
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert "```text" not in prose
    assert "](pictures/" not in prose
    assert not re.search(r"\]\(\d\d-[\w-]+\.md", prose)
    assert not re.search(r"</?(details|summary)>", prose)
    assert prose.count("](data:image/svg+xml;base64,") == 1  # the diagram
    links = re.findall(r"\]\(([^)#\s]+)\)", prose)
    assert [one for one in links if not re.match(r"https?:|data:|\d\d-[\w.-]+\.ipynb$", one)] == []


def test_make_docs_writes_what_has_changed_and_fails_once(tmp_path, monkeypatch, capsys):
    page = tmp_path / "settings.md"
    page.write_text("old", encoding="utf-8")
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "SETTINGS", page)
    monkeypatch.setattr(docs, "CHINESE_SETTINGS", tmp_path / "settings.zh.md")
    monkeypatch.setattr(docs, "COMMANDS", tmp_path / "commands.md")
    monkeypatch.setattr(docs, "RESULTS", tmp_path / "results.md")
    monkeypatch.setattr(docs, "chapters", list)
    assert docs.main([]) == 1
    assert (
        "changed: commands.md\nchanged: results.md\nchanged: settings.md\nchanged: settings.zh.md\n"
        in capsys.readouterr().out
    )
    assert page.read_text(encoding="utf-8").startswith("# Every setting\n")
    assert docs.main([]) == 0


@pytest.mark.parametrize("index", ["README.md", "README.zh.md"])
def test_the_index_leads_to_every_page_for_readers(index):
    folder = ROOT / "docs"
    text = (folder / index).read_text(encoding="utf-8")
    linked = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+\.md[^)]*)\)", text)}
    pages = {str(path.relative_to(folder)) for path in folder.rglob("*.md")}
    wanted = {page for page in pages if ".zh." not in page}
    if ".zh." in index:  # to the Chinese page where there is one
        in_chinese = {page: page.replace(".md", ".zh.md") for page in wanted}
        wanted = {there if there in pages else page for page, there in in_chinese.items()}
    others = {page for page in wanted if page.startswith(("tour/", "dev/", "README"))}
    assert wanted - others - linked == set()
