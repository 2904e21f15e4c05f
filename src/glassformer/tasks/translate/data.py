"""The data of `translate`: pairs of texts, in one table or in two parallel files."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.config.own_code import is_own
from glassformer.config.run import Config
from glassformer.data.columns import COLUMN_NAMES, Columns, Role, find_by_name, normal_name
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.doctor.repairs import StrayCharacters
from glassformer.data.ingest import LOOKED_AT, is_file
from glassformer.data.rows import Row, as_text
from glassformer.data.samples import Sample
from glassformer.data.sources.files import packing_of, suffix_of
from glassformer.data.sources.formats import read_plain, reader_of
from glassformer.data.sources.parallel import AND, paired, read_parallel, side_lines
from glassformer.data.splits import content_key
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.text_checks import GarbledText
from glassformer.tasks.shared.text_data import TextSchema, text_key
from glassformer.tasks.translate.checks.languages import PairLanguages
from glassformer.tasks.translate.checks.lengths import PairLengths
from glassformer.tasks.translate.checks.pairs import CopiedSources, EachLanguage, MixedScripts, Tags

SIDES = ("source", "target")
NEARLY = 0.05  # of the lines of one file may be missing in the other, if the two are a pair,
SOME_LINES, OF_THEM = 20, 0.1  # or 20 lines, if they are at most a tenth
NUMBERS = re.compile(r"\d+")
FEWEST_PAIRS, DIFFERENT = 5, 0.8  # rows, and the share of different texts, of a table of pairs
LONGER = 3  # how many times as long as the other one side may be
OF_OTHERS = {"text", "label"}  # columns that a table of pairs does not have
LANGUAGES = {  # names of columns; `id` and `no` more often number the rows
    *("ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "fa", "fi", "fr", "he"),
    *("hi", "hr", "hu", "is", "it", "ja", "ko", "lt", "lv", "nl", "pl", "pt", "ro"),
    *("ru", "sk", "sl", "sr", "sv", "th", "tr", "uk", "ur", "vi", "zh", "eng", "deu", "fra", "spa"),
    *("arabic", "bengali", "bulgarian", "catalan", "chinese", "croatian", "czech", "danish"),
    *("dutch", "english", "estonian", "finnish", "french", "german", "greek", "hebrew", "hindi"),
    *("hungarian", "icelandic", "indonesian", "italian", "japanese", "korean", "latin"),
    *("latvian", "lithuanian", "mandarin", "norwegian", "persian", "polish", "portuguese"),
    *("romanian", "russian", "serbian", "slovak", "slovenian", "spanish", "swedish", "thai"),
    *("turkish", "ukrainian", "urdu", "vietnamese", "中文", "英文", "英语", "汉语", "deutsch"),
    *("englisch", "français", "anglais", "español", "inglés", "русский", "английский"),
}


class TranslateSchema(TextSchema):
    """A source and its target; optionally more references, and the target language."""

    roles = (
        Role(name="source", names=COLUMN_NAMES["source"]),
        Role(name="target", names=COLUMN_NAMES["target"], answer=True),
        Role(
            name="references",
            names=COLUMN_NAMES["references"],
            required=False,
            several=True,
            answer=True,
        ),
        Role(name="to", names=COLUMN_NAMES["to"], required=False),
    )
    related_kinds = ("target",)

    def arrange(self, names: Sequence[str]) -> list[str]:
        return pair_files(names)

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        two = paired(name)
        return read_parallel(*two, config.encoding) if two else None

    def files(self, name: str) -> tuple[Path, ...]:
        return paired(name) or super().files(name)

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """Pairs are

        a TMX file;
        two text files whose names differ only in their endings, such as train.en and train.de,
        or that have about the same number of lines;
        columns named like a source and a target, or two columns named after languages, and none
        named text or label;
        a table of two columns, both of texts that are nearly all different and alike in length.
        """
        if suffix_of(Path(name)) == ".tmx":
            return True
        if two := paired(name):
            return end_apart(*two) or has_nearly_as_many_lines(*two, config.encoding)
        head = list(islice(rows, LOOKED_AT))
        columns = list(dict.fromkeys(column for row in head for column in row.values))
        sides = [role for role in self.roles if role.name in SIDES]
        if {column.strip().casefold() for column in columns} & OF_OTHERS:
            return False
        named = len(find_by_name(columns, sides)) == len(sides) or len(languages_in(columns)) == 2
        return named or are_pairs(columns, head)

    def guess(self, found: Columns, free: Sequence[str], head: Sequence[Row]) -> Columns:
        """The remaining columns are the missing sides, in order, or those named after languages.

        Target and references may share a column; the first reference is then the target.
        """
        found = dict(found)
        missing = [role.name for role in self.roles if role.required and role.name not in found]
        for sides in (free, languages_in(free)):
            if len(missing) == len(sides):
                found |= zip(missing, sides, strict=True)
                break
        if "references" in found:
            found.setdefault("target", found["references"])
        elif normal_name(found.get("target", "")) in COLUMN_NAMES["references"]:
            found["references"] = found["target"]
        return found

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        value = row[columns[role.name]]
        is_first = role.name == "target" and columns["target"] == columns.get("references")
        if is_first and isinstance(value, list):
            return next(iter(value), "")
        return super().value(role, row, columns)

    def related(self, sample: Sample) -> Mapping[str, str]:
        """The target, which several sources may share."""
        return {"target": content_key(str(sample["target"]))} if "target" in sample else {}

    def checks(self, config: Config) -> list[Check]:
        reads = config.data.tokenizer.simplified
        writes = config.task.target.simplified if config.task.target else reads
        keys = {
            "source": partial(text_key, in_simplified=reads),
            "target": partial(text_key, in_simplified=writes),
        }

        def answer(sample: Sample) -> str:
            return keys["target"](sample["target"])

        settings = {"source": "data.tokenizer.simplified"} if not reads else {}
        if not writes:
            own = "task.target" if config.task.target else "data.tokenizer"
            settings |= {"target": f"{own}.simplified"}
        if is_own(config.model.frontend.kind):
            return default_checks(answer)
        return [
            *default_checks(answer),
            GarbledText(*SIDES),
            StrayCharacters(*SIDES),
            Tags(),
            EachLanguage(PairLengths),
            EachLanguage(PairLanguages),
            CopiedSources(keys),
            MixedScripts(settings),
        ]


def pair_files(names: Sequence[str]) -> list[str]:
    """The names, with every two consecutive plain text files joined into one name.

    Tables contain both sides, and folders and datasets are handled elsewhere: they are unchanged.
    """
    found: list[str] = []
    waiting: str | None = None
    for name in names:
        if paired(name) or not is_file(name) or reader_of(Path(name)) is not read_plain:
            found.append(name)
        elif waiting is None:
            waiting = name
        else:
            _refuse_same_language(Path(waiting), Path(name))
            found.append(f"{waiting}{AND}{name}")
            waiting = None
    if waiting is not None:
        raise GlassformerError(
            f"{waiting}: a single text file has only one side; give both files, as in "
            f"train.de train.en, or rename it to .tsv if each line has both, separated by a tab"
        )
    return found


def has_nearly_as_many_lines(source: Path, target: Path, encoding: str | None) -> bool:
    """Whether two files look like a pair by their numbers of lines, which may differ slightly.

    Names that differ only in numbers look like parts of one text, and must match exactly.
    """
    fewer, more = sorted(sum(1 for _ in side_lines(path, encoding)) for path in (source, target))
    missing = more - fewer
    if missing and NUMBERS.sub("", source.name) == NUMBERS.sub("", target.name):
        return False
    return missing <= max(NEARLY * more, min(SOME_LINES, OF_THEM * more))


def end_apart(one: Path, other: Path) -> bool:
    """Whether two names differ only in their endings, which are words rather than numbers.

    >>> end_apart(Path("train.en.gz"), Path("train.de.gz")), end_apart(Path("x.1"), Path("x.2"))
    (True, False)
    """
    ends = [suffix_of(path) for path in (one, other)]
    bare = [str(path).removesuffix(packing_of(path)) for path in (one, other)]
    begins = {name[: len(name) - len(end)] for name, end in zip(bare, ends, strict=True)}
    return len(begins) == 1 and all(end[1:2].isalpha() for end in ends)


def _refuse_same_language(source: Path, target: Path) -> None:
    """Refuse two files of one language."""
    language = suffix_of(source)
    if language == suffix_of(target) and language not in ("", ".txt"):
        raise GlassformerError(
            f"{source} and {target.name}: both end in {language}, so they are not a pair; put each "
            f"source right before its target, as in train.de train.en"
        )


def languages_in(columns: Sequence[str]) -> list[str]:
    """The columns that are named after a language: `en`, `German`."""
    return [column for column in columns if normal_name(column) in LANGUAGES]


def are_pairs(columns: Sequence[str], head: Sequence[Row]) -> bool:
    """Whether two columns hold texts and something like their translations.

    Numbers may be those of the rows, so they are not taken for one side.
    """
    if len(columns) != 2 or len(head) < FEWEST_PAIRS:
        return False
    sides = [[as_text(row.values.get(column)) for row in head] for column in columns]
    if any(len({*texts}) < DIFFERENT * len(texts) for texts in sides):
        return False
    if any(all(map(NUMBERS.fullmatch, texts)) for texts in sides):
        return False
    short, long = sorted(sum(map(len, texts)) / len(texts) for texts in sides)
    return long <= LONGER * short
