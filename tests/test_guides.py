"""Figures that the guides and studies repeat are those of the code, the recipes and the tables."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

from glassformer.data import shards, splitter
from glassformer.data.images import reading
from glassformer.decode import required
from glassformer.engine import scheduler
from glassformer.metrics.units import LEAST
from glassformer.models.losses import chunked
from glassformer.runs import timing
from glassformer.tasks.classify.sounds import SoundInputs
from glassformer.tasks.generate import documents, predictor
from glassformer.tasks.generate.settings import GenerateConfig
from glassformer.tasks.generate.task import SMALL, GenerateTask
from glassformer.tasks.recognise.images import ImageInputs
from glassformer.tasks.recognise.settings import RecogniseConfig
from glassformer.tasks.recommend.factors import Factors
from glassformer.tasks.recommend.sasrec import SasRec
from glassformer.tasks.recommend.settings import RecommendConfig
from glassformer.tasks.shared import reliability
from glassformer.tasks.transcribe import language_model, transcripts
from glassformer.tasks.transcribe.settings import TranscribeConfig
from glassformer.tasks.transcribe.task import TranscribeTask
from glassformer.tasks.translate import writing
from glassformer.tasks.translate.settings import TranslateConfig
from glassformer.tasks.translate.task import TranslateTask

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MILLION = 1_000_000
SAMPLE = GenerateConfig().decode.sample
RECOMMEND = RecommendConfig()
STUDIES = DOCS / "results" / "studies.md"


def text_of(page):
    """The words of a page on one line."""
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("page", "phrase"),
    [
        ("reference/engine", f"more than 2^{chunked.CHUNK['cpu'].bit_length() - 1} scores"),
        ("reference/engine", f"; 2^{chunked.CHUNK['cuda'].bit_length() - 1} on a GPU"),
        ("reference/engine", f"(at most {scheduler.MOST:,})"),
        ("guides/generating", f"shards of {round(shards.BLOCK / MILLION)} million characters"),
        ("guides/generating.zh", f"每片 {round(shards.BLOCK / MILLION) * 100:,} 万个字符"),
        ("guides/generating", f"sections of {documents.SECTION:,} characters"),
        ("guides/generating", f"fewer than {splitter.ENOUGH_GROUPS} files"),
        ("guides/generating", f"up to {predictor.TOGETHER} at a time"),
        ("guides/generating", f"lasts {GenerateTask.default_epochs:g} epochs"),
        ("guides/generating", f"below {SMALL // MILLION} million characters of text"),
        ("guides/generating", f"below 1 less | {SAMPLE.temperature:g} |"),
        ("guides/generating", f"to at least p | {SAMPLE.top_p:g} |"),
        ("guides/generating", f"in training, {GenerateConfig().max_length} by default"),
        ("guides/recognising", f"more than {round(reading.MOST_PIXELS / MILLION)} million pixels"),
        ("guides/recognising", f"at most {RecogniseConfig().largest} pixels (`task.largest`)"),
        ("guides/recognising", f"lasts {ImageInputs.epochs:g} epochs at most"),
        ("guides/recognising", f"of their side; {RecogniseConfig().augment.crop:g} by default"),
        ("guides/translating", f"for {TranslateTask.default_epochs:g} epochs"),
        ("guides/translating", f"each side, {TranslateConfig().max_length}; longer"),
        ("guides/translating", f"beam width ({TranslateConfig().decode.beam.width} by default)"),
        ("guides/translating", f"up to {timing.MOST_ANSWERED} validation rows"),
        ("guides/translating", f"groups of at least {reliability.SMALLEST};"),
        ("guides/translating", f"fewer than {reliability.FEWEST} validation rows"),
        ("guides/translating", f"tokens as its source, plus {writing.MORE}."),
        ("guides/transcribing", f"together for {TranscribeTask.default_epochs:g} epochs"),
        ("guides/transcribing", f"With {splitter.ENOUGH_GROUPS} or more speakers"),
        ("guides/transcribing", f"fewer than {splitter.ENOUGH_GROUPS} different ones"),
        ("guides/transcribing", f"at most {transcripts.FEW_WORDS}, each spoken"),
        ("guides/transcribing", f"spoken {transcripts.OFTEN} times or more"),
        ("guides/transcribing", f"from {transcripts.MANY_CHARACTERS // MILLION} million char"),
        ("guides/transcribing", f"on about {language_model.TRIED} validation rows"),
        ("guides/transcribing", f"`task.max_seconds` ({TranscribeConfig().max_seconds:g})"),
        ("guides/transcribing", f"needs much data; {TranscribeConfig().ctc_weight:g} by default"),
        ("guides/recommending", f"lasts {Factors.default_epochs:g} epochs (SASRec: "),
        ("guides/recommending", f"(SASRec: {SasRec.default_epochs:g})"),
        ("guides/recommending", f"| width of the vectors | {RECOMMEND.features} |"),
        ("guides/recommending", f"close to the mean | {RECOMMEND.penalty:g} |"),
        ("guides/recommending", f"drawn for each | {RECOMMEND.negatives} |"),
        ("guides/recommending", f"that SASRec uses | {RECOMMEND.max_length} |"),
    ],
)
def test_a_guide_has_the_number_of_the_code(page, phrase):
    assert phrase in text_of(f"{page}.md")


def test_numbers_in_words_are_those_of_the_code():
    assert (splitter.REPEATS, required.MOST_WORDS, LEAST["mean"].groups, writing.TIMES) == (
        10,
        10,
        5,
        3,
    )
    assert SoundInputs.epochs == TranscribeTask.default_epochs
    for page, words in {
        "guides/transcribing.md": "more than ten rows of each on average",
        "guides/translating.md": "must contain (at most ten)",
        "guides/generating.md": "with fewer than five documents",
    }.items():
        assert words in text_of(page)
    assert "at most three times as many tokens as its source" in text_of("guides/translating.md")


@pytest.mark.parametrize(
    ("recipe", "scale", "digits", "pages"),
    [
        ("an4", 100, 1, [STUDIES]),
        ("morse", 100, 1, [STUDIES]),
        ("films", 1, 3, [STUDIES]),
        ("digits", 100, 1, [DOCS / "guides" / f"recognising{zh}.md" for zh in ("", ".zh")]),
        ("mnist", 100, 1, [DOCS / "guides" / f"recognising{zh}.md" for zh in ("", ".zh")]),
    ],
)
def test_a_result_is_that_of_the_recipe(recipe, scale, digits, pages):
    result = tomllib.loads((ROOT / "recipes" / f"{recipe}.toml").read_text("utf-8"))["result"]
    value, low, high = (f"{scale * result[name]:.{digits}f}" for name in ("value", "low", "high"))
    for page in pages:
        assert re.search(rf"{value}( %[\w ]*)? \[{low}, {high}\]", page.read_text("utf-8"))


def test_pictures_show_every_row_of_their_tables_in_a_look_of_its_own():
    length = runpy.run_path(str(ROOT / "benchmarks" / "length.py"))
    rows, looks = length["rows_of"](STUDIES), length["LOOKS"]
    assert {*rows} == {*looks}
    assert len({*looks.values()}) == len(looks)
    morse = runpy.run_path(str(ROOT / "examples" / "morse_snr.py"))
    assert [*morse["curves_of"](str(STUDIES))] == [morse["THRESHOLD"], morse["TRAINED"]]


def test_names_at_the_ends_of_lines_do_not_overlap():
    apart = runpy.run_path(str(ROOT / "benchmarks" / "length.py"))["apart"]
    assert apart([1.0, 1.1, 5.0, 5.2], 0.5) == [1.0, 1.5, 5.0, 5.5]


def test_the_chinese_guides_have_the_figures_of_the_studies():
    def rates(text):
        return re.findall(r"\| (\d+\.\d \| .*\d+\.\d) \|$", text, flags=re.MULTILINE)

    study = STUDIES.read_text("utf-8").partition("## Tang poems\n")[2].partition("\n## ")[0]
    assert len(rates(study)) == 5
    guide = (DOCS / "guides" / "generating.zh.md").read_text("utf-8")
    tables = rates(guide.partition("## 唐诗\n")[2])
    assert tables == rates(study)[:2]
    for figure in re.findall(r"\d+\.\d", " ".join(rates(study)[2:])):
        assert f"{figure} %" in guide
    chosen = re.search(r"within two points of the poems': ([\d.]+)\.", study)[1]
    assert f"所以选了 {chosen}" in guide


GUIDES = ["translating", "transcribing", "recognising", "generating", "recommending"]


@pytest.mark.parametrize("guide", [*GUIDES, "custom-modalities"])
def test_a_guide_is_a_how_to_without_the_notes_of_its_makers(guide):
    text = (DOCS / "guides" / f"{guide}.md").read_text("utf-8")
    heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    wanted = ["Data", "Train", "Predict", "Scores", "Tips", "Limits"]
    if guide in GUIDES:
        assert [head for head in heads if head in wanted] == wanted
    assert "../dev/" not in text
    assert not re.search(r"\bp [<=] 0|\b[Cc]ommit [0-9a-f]{7}|[Ss]eed 003", text)


@pytest.mark.parametrize("guide", [*GUIDES, "custom-modalities"])
def test_a_guide_has_no_other_commands_in_chinese(guide):
    def commands(name):
        text = (DOCS / "guides" / name).read_text("utf-8")
        return re.findall(r"^    (glassformer (?:doctor|train|reproduce) [^#\n]*)", text, re.M)

    shown = {line.strip() for line in commands(f"{guide}.md")}
    extra = {"glassformer reproduce tang-poetry --run runs/tang"}
    assert {line.strip() for line in commands(f"{guide}.zh.md")} - extra <= shown
