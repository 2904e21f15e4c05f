"""What the documents say is true: their code runs, and what they name exists."""

import re
import shlex
import textwrap
import tomllib
from configparser import ConfigParser
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest
import torch
from quick import quickly, unchecked

from glassformer import core
from glassformer.cli import main
from glassformer.config import (
    SIZES,
    StackConfig,
    decoding as decoding_settings,
    model,
    stack_of_size,
)
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import GrowingCache
from glassformer.core.kernels import KERNELS
from glassformer.core.layout import Layout
from glassformer.core.masks import causal
from glassformer.core.positions import POSITIONS, make_position
from glassformer.data import rows
from glassformer.data.images import reading
from glassformer.data.sources import decoding
from glassformer.models.stacks import Encoder
from glassformer.tasks.classify import suited
from glassformer.tasks.classify.settings import ClassifyConfig
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.generate.settings import GenerateConfig
from glassformer.tasks.recommend.settings import RecommendConfig
from glassformer.tasks.shared import labels, ngrams

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CORE = (ROOT / "docs" / "reference" / "core.md").read_text(encoding="utf-8")
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
RESULTS = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
SPEED = (ROOT / "docs" / "results" / "benchmarks.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")


def blocks(text, language="python"):
    """The code in a document, without the indentation of the list it may stand in."""
    block = rf"^( *)```{language}\n(.*?)^\1```"
    found = re.findall(block, text, flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


def section(title):
    """What CONTRIBUTING says under a title."""
    return CONTRIBUTING.partition(f"## {title}\n")[2].partition("\n## ")[0]


def run(code, names=None):
    names = {"__name__": "document"} | (names or {})
    exec(compile(code, "document", "exec"), names)
    return names


@pytest.mark.parametrize("number", range(len(blocks(CORE))))
def test_the_code_on_the_core_runs(number, capsys):
    run(blocks(CORE)[number])
    assert capsys.readouterr().out.startswith(["#.......", "torch.Size([2, 4, 5, 7])"][number])


def test_the_code_in_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [code] = blocks(README)
    with quickly(), unchecked():
        run(code)
    assert capsys.readouterr().out == re.search(r"\)  # (\w+)\n", code)[1] + "\n"


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 160


def test_the_commands_in_the_readme_run_on_its_file(tmp_path, monkeypatch, capsys):
    """On fewer rows and steps; `serve` has its own tests."""
    monkeypatch.chdir(tmp_path)
    commands = [line[6:] for line in README.splitlines() if line.startswith("    $ ")]
    assert [shlex.split(command)[:2] for command in commands] == [
        ["head", "-3"],
        *(["glassformer", verb] for verb in ("train", "predict", "explain", "serve")),
    ]
    rows = (ROOT / "examples" / "names.csv").read_text(encoding="utf-8").splitlines()
    shown = README.partition(f"    $ {commands[0]}\n")[2].splitlines()[:3]
    assert [line.strip() for line in shown] == rows[:3]
    (tmp_path / "examples").mkdir()
    few = rows[:1] + [row for row in rows[1:] if row.endswith((",German", ",Polish"))][:80]
    (tmp_path / "examples" / "names.csv").write_text("\n".join(few), encoding="utf-8")
    with quickly(), unchecked():
        for command in commands[1:4]:
            _, *argv = shlex.split(
                re.sub("--time 2m", "--steps 2 --size tiny --no-pretrain", command)
            )
            assert main(argv) == 0, command
    printed = "".join(capsys.readouterr())
    assert "columns: text = 'name', label = 'language'; header: yes" in printed
    assert "for German: " in printed or "for Polish: " in printed


def test_the_code_in_the_guide_to_heads_runs(capsys):
    guide = (ROOT / "docs" / "guides" / "heads.md").read_text(encoding="utf-8")
    run(blocks(guide)[0])
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:3] == ["torch.Size([2, 4, 5, 7])", "torch.Size([2, 2, 1, 7])"]
    assert printed[0] == printed[3]


@pytest.mark.parametrize("language", ["", ".zh"], ids=["English", "Chinese"])
def test_the_verdict_that_a_guide_shows_is_that_of_the_table_of_methods(language):
    guides = ROOT / "docs" / "guides"
    guide = (guides / f"explaining{language}.md").read_text(encoding="utf-8")
    table = (guides / f"explaining-methods{language}.md").read_text(encoding="utf-8")
    [verdict] = re.findall(r"Better than chance by ([^,]+, [^,]+), measured on 128", guide)
    assert f"| occlusion | {verdict} |" in table


def test_the_code_on_recommending_runs(capsys):
    with quickly(), unchecked():
        run(blocks((ROOT / "docs" / "guides" / "recommending.md").read_text(encoding="utf-8"))[0])
    assert capsys.readouterr().out.startswith("[{'item': 'film ")


@pytest.mark.parametrize(
    ("page", "said"),
    [("reference/python.md", "['a', 'lovely', 'film']\n"), ("guides/training.md", "bad\n")],
)
def test_the_code_on_training_runs(page, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with quickly(), unchecked():
        run(blocks((ROOT / "docs" / page).read_text(encoding="utf-8"))[0])
    assert capsys.readouterr().out.endswith(said)


def test_the_defaults_of_a_classifier_on_a_cpu_are_those_of_the_code():
    guide = (ROOT / "docs" / "guides" / "classifying.md").read_text(encoding="utf-8")
    table = guide.partition("| training texts on a CPU |")[2].partition("\n\n")[0]
    found = [re.findall(r"\d+(?:[,.]\d+)*", row) for row in table.splitlines()[2:]]
    general, million = SIZES["tiny"], 1_000_000
    few, many = f"{suited.FEW / million:g}", f"{suited.MANY / million:g}"
    both = [suited.by_both(epochs=6.0), suited.by_both(epochs=4.0)]
    kinds = [*both, suited.by_characters(), *(suited.by_words(many=some) for some in (False, True))]
    sentences, more, phrases, longer, most = (f"{kind['train']['epochs']:g}" for kind in kinds)
    usual = ["1", f"{TextInputs.epochs:g}"]
    assert found == [
        [f"{suited.FEWEST:,}", f"{general['dim']}", f"{general['depth']}", *usual],
        [
            *(f"{suited.PHRASE}", f"{suited.SENTENCE}", few),
            *("4", sentences, f"{suited.FEWER:,}", more),
        ],
        [f"{suited.SHORT}", many, "4", few, "2", phrases],
        [many, "4", few, "2", longer],
        [f"{suited.MOST / million:g}", "1", most, phrases],
        [f"{suited.FEWEST:,}", *usual],
    ]


def test_plans_are_as_good_as_the_benchmarks_say():
    benchmarks = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    [error] = re.findall(r"^The median error is (\d+) %", benchmarks, flags=re.MULTILINE)
    for name in ("training.md", "training.zh.md"):
        text = (ROOT / "docs" / "guides" / name).read_text(encoding="utf-8")
        assert f"{error} %" in text.partition("glassformer plan")[2].partition("\n\n")[0]


def test_the_terminal_on_the_core_shows_what_the_command_prints(capsys):
    command, picture = re.search(r"    \$ glassformer (.*)\n((?:    [#.]+\n)+)", CORE).groups()
    argv = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)]
    assert main(argv) == 0
    assert capsys.readouterr().out == textwrap.dedent(picture)


def test_the_example_of_a_position_scheme_works_once_it_is_listed(monkeypatch):
    scheme, line = blocks(section("Add a position scheme"))
    names = run(scheme)
    monkeypatch.setattr(
        "glassformer.core.positions.POSITIONS", POSITIONS | run(f"new = {{{line}}}", names)["new"]
    )
    position = make_position("kerple", 24, 6, 7)
    layer, x, cache = MultiHeadAttention(24, 6), torch.randn(2, 5, 24), GrowingCache()
    whole = layer(x, mask=causal, position=position)
    steps = [layer(t, mask=causal, position=position, cache=cache) for t in x.split(1, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)
    assert not torch.allclose(whole, layer(x, mask=causal))
    whole.sum().backward()
    assert all(part.grad.any() for part in position.parameters())


def test_the_example_of_a_block_works_once_it_is_listed(monkeypatch):
    block, line = blocks(section("Add a block"))
    names = run(block)
    monkeypatch.setattr("glassformer.models.stacks.BLOCKS", run(f"new = {{{line}}}", names)["new"])
    monkeypatch.setattr("glassformer.config.model.BLOCK_NAMES", ("macaron",))
    config = StackConfig(dim=32, depth=2, dropout=0.0, block="macaron")
    stack, x, layout = Encoder(config), torch.randn(2, 5, 32), Layout.padded([5, 3])
    y = stack(x, layout=layout)
    alone = stack(x[1:, :3], layout=Layout.full(1, 3))
    torch.testing.assert_close(y[1:, :3], alone)
    y.sum().backward()
    assert all(part.grad is not None for part in stack.parameters())


def test_the_example_of_a_job_is_the_one_that_is_taken_through_every_command():
    def unindented(text):
        return "\n".join(line.strip() for line in text.splitlines())

    folder, text = ROOT / "tests" / "other_job" / "installed", section("Add a job")
    files = [unindented(path.read_text(encoding="utf-8")) for path in folder.glob("tones/*.py")]
    shown = [unindented(code) for code in blocks(text)]
    assert [sum(code in file for file in files) for code in shown] == [1, 1, 1]
    named = tomllib.loads(blocks(text, "toml")[0])["project"]["entry-points"]
    entries = ConfigParser()
    entries.read(folder / "tones-1.0.dist-info" / "entry_points.txt")
    assert named == {group: dict(entries[group]) for group in entries.sections()}


def test_the_alphabet_is_the_one_in_core():
    alphabet = [line for line in core.__doc__.splitlines() if line.startswith("    ")]
    assert len(alphabet) > 1
    assert "\n".join(alphabet) in CORE


def names_in(section):
    """What the rows of a section's table are about."""
    text = CORE.partition(section)[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)


def test_the_table_of_kernels_has_every_kernel_in_order():
    assert names_in("## Attention kernels") == list(KERNELS)


def test_the_sizes_are_those_of_the_dial():
    assert names_in("## Whole models") == list(SIZES)
    for name, size in SIZES.items():
        hidden = stack_of_size(name).hidden
        row = f"| `{name}` | {size['dim']} | {size['heads']} | {size['depth']} | {hidden} |"
        assert row in CORE


def test_the_map_shows_every_folder_and_nothing_that_is_not_there():
    the_map = section("The map")
    places = re.findall(r"^    ((?:src|examples|tests|docs)\S*) ", the_map, flags=re.MULTILINE)
    assert [place for place in places if not (ROOT / place).exists()] == []
    folders = [path.parent for path in (ROOT / "src" / "glassformer").glob("*/__init__.py")]
    assert {f"{folder.relative_to(ROOT)}/" for folder in folders} <= set(places)


def test_every_extra_is_explained():
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \|$", INSTALL, flags=re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {*rows} == extras.keys() - {"dev"}


@pytest.mark.parametrize("text", [README, CHINESE], ids=["English", "Chinese"])
def test_the_results_in_the_readme_are_those_of_the_page_of_results(text):
    shown = re.findall(r"`([\w-]+)`[:：][^|]*?([\d.]+)[^|\[]*(\[[\d., ]+\])", text)
    assert len(shown) == len({*re.findall(r"`train (\w+)`", text)} - {"pretrain"})
    for name, value, ends in shown:
        [row] = [row for row in RESULTS.splitlines() if row.startswith(f"| `{name}`")]
        assert f"**{value}** {ends}" in row


@pytest.mark.parametrize("page", ["faq.md", "faq.zh.md"])
@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("digits", r"1,400[^,，]*?(\d+) %"),
        ("trec", r"(?<!\d)5,000[^%]*?(\d+) %"),
        ("imdb", r"25,000[^,，]*?(\d+) %"),
        ("multi30k-en-de", r"29,000\D*?(\d+) BLEU"),
        ("fsdd", r"2,700\D*?([\d.]+) %"),
    ],
)
def test_the_results_named_for_orientation_are_those_of_the_recipes(page, recipe, said):
    [shown] = re.findall(said, " ".join((ROOT / "docs" / page).read_text("utf-8").split()))
    [row] = [row for row in RESULTS.splitlines() if row.startswith(f"| `{recipe}`")]
    [value] = re.findall(r"\*\*([\d.]+)\*\*", row)
    assert Decimal(shown) == round(Decimal(value), len(shown.partition(".")[2]))


def test_the_readme_counts_the_recipes():
    recipes = [path for path in (ROOT / "recipes").glob("*.toml") if "[result]" in path.read_text()]
    for text, unit in [(README, "results"), (CHINESE, "个结果")]:
        assert re.search(rf"\[{len(recipes)} {unit}\]\(docs/results\.md\)", text)
    notes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n{len(recipes)} published results" in notes


@pytest.mark.parametrize("text", [README, CHINESE], ids=["English", "Chinese"])
@pytest.mark.parametrize(
    ("peer", "measured"),
    [
        ("gpt-fast", r"\| `one`: .*\| ([\d.]+)x"),
        ("nanoGPT", r"\| `language-model` \| nanoGPT .*\| ([\d.]+)x"),
        ("padded batches|填充批次", r"\| `engine`: .*\| ([\d.]+)x"),
    ],
)
def test_the_readme_is_as_fast_as_the_benchmarks_say(text, peer, measured):
    [shown] = re.findall(rf"^\|[^|]+\| [^|]*(?:{peer}) \| ([\d.]+)x \|", text, re.MULTILINE)
    [value] = re.findall(measured, BENCHMARKS)
    assert float(shown) == round(float(value), len(shown.partition(".")[2]))
    assert f"{shown}x" in SPEED


def test_translation_is_as_fast_as_the_benchmarks_say():
    [table] = re.findall(r"^## Translation\n[^|]*((?:\|.*\n)+)", BENCHMARKS, flags=re.MULTILINE)
    rows = [re.findall(r"\| ([\d.]+)x \(", row) for row in table.splitlines()[2:]]
    hugging_face = [float(row[0]) for row in rows]
    least, most = f"{min(hugging_face):.1f}x", f"{max(hugging_face):.1f}x"
    assert f"Hugging Face `generate` | {least} to {most} |" in README
    assert f"Hugging Face `generate` | {least} to {most} |" in SPEED
    assert f"Hugging Face `generate` | {least} 到 {most} |" in CHINESE
    peers = [float(row[1]) for row in rows if len(row) > 1]
    assert f"CTranslate2 | {min(peers):.1f}x to {max(peers):.1f}x |" in SPEED


SPEEDS = re.findall(r"^\| ([^|\n]+\|[^|\n]+) \|([^|\n]*\dx[^|\n]*)\|", SPEED, flags=re.MULTILINE)


@pytest.mark.parametrize(("work", "said"), SPEEDS, ids=[work for work, _ in SPEEDS])
def test_the_summary_of_speeds_has_figures_of_the_benchmarks(work, said):
    if "27M" in work:
        pytest.skip("no part of the benchmarks, as the page says")
    measured = [Decimal(figure) for figure in re.findall(r"(\d+\.\d+)x", BENCHMARKS)]
    for figure in re.findall(r"(\d+\.\d+)x", said):
        unit = Decimal(figure).as_tuple().exponent
        rounded = {one.quantize(Decimal(1).scaleb(unit), ROUND_HALF_UP) for one in measured}
        assert Decimal(figure) in rounded


@pytest.mark.parametrize(
    "page",
    ["results/benchmarks.md", "guides/training.md", "guides/training.zh.md"],
)
def test_the_error_of_plans_is_the_median_of_the_benchmarks(page):
    table = BENCHMARKS.partition("| run on two CPU cores |")[2].partition("\n\n")[0]
    ratios = [float(ratio) for ratio in re.findall(r"\| (\d\.\d+) \|$", table, flags=re.MULTILINE)]
    median = sorted(abs(ratio - 1) for ratio in ratios)[len(ratios) // 2]
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert (len(ratios), f" {median:.0%}".replace("%", " %") in text) == (5, True)


def test_the_pytorch_to_install_first_is_the_one_that_set_up_pins():
    pins = (ROOT / "constraints.txt").read_text()
    [named] = re.findall(r"\[[^\]]*PyTorch (\d+\.\d+)[^\]]*\]", INSTALL)
    assert f"\ntorch=={named}." in pins


@pytest.mark.parametrize("name", ["troubleshooting.md", "troubleshooting.zh.md"])
def test_every_message_to_look_up_is_one_that_is_printed(name):
    sources = [path.read_text("utf-8") for path in (ROOT / "src" / "glassformer").rglob("*.py")]
    said = re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources))  # a sentence on two lines
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[^|]+) \| [^|]+ \| [^|]+ \|$", page, flags=re.MULTILINE)
    assert len(cells) >= 30
    parts = [part for cell in cells for part in re.findall(r"`([^`]+)`", cell)]
    assert [part for part in parts if part not in said] == []


def test_hints_for_a_missing_library_name_an_extra_there_is_from_a_package_and_a_clone():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"\{install\('(\w+)'\)\}", text)}
    assert len(named) >= 8
    assert named <= extras.keys()
    assert [
        text[:80] for text in sources if "pip install" in text and "def install(" not in text
    ] == []


def test_there_is_one_address_of_the_repository():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    owned = re.compile(r"https://github\.com/OWNER/[\w-]+|https://github\.com/\w+/glassformer")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert owned.findall(citation) == [project["urls"]["Repository"]]
    pages = [README, CHINESE, *(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))]
    assert {url for text in pages for url in owned.findall(text)} <= {project["urls"]["Repository"]}


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_file_named_exists(text):
    named = re.findall(r"`((?:src|tests|docs|examples)/[\w./]+)`|\]\((\w+\.md)\)", text)
    assert named
    assert [a or b for a, b in named if not (ROOT / (a or b)).exists()] == []


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_every_make_target_named_exists(text):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)(?=`| {4})", text)) <= targets


LIMITS = (ROOT / "docs" / "operate" / "limits.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("row", "value"),
    [
        ("one field of a table", rows.LONGEST_FIELD),
        ("one line of a text file", decoding.LONGEST_LINE),
        ("one document for", decoding.LONGEST_DOCUMENT),
        ("an image", reading.MOST_PIXELS),
        ("labels of `classify`", labels.MANY),
        ("an answer", decoding_settings.MOST_TOKENS),
        ("beams and answers", decoding_settings.MOST_ANSWERS),
        ("networks in an ensemble", model.MOST_MEMBERS),
        ("tokens of a text", ClassifyConfig().max_length),
        ("tokens of a window", GenerateConfig().max_length),
        ("items of a user", RecommendConfig().max_length),
        ("The baselines are trained", ngrams.MOST_ROWS),
    ],
)
def test_the_page_of_limits_has_the_numbers_of_the_code(row, value):
    [line] = [line for line in LIMITS.splitlines() if line.removeprefix("| ").startswith(row)]
    assert value in {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", line)}
