"""Which column plays which role: as told, else by name, else by what it holds.

A column is known by a name in SYNONYMS, earlier ones first, whole ("Review Text") before by its
last word ("airline_sentiment"). To know another name, or another role, write it there.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from glassformer.data.rows import NoText, Row, listed
from glassformer.errors import GlassformerError, unknown

FEW = 50  # a label has at most this many values in the sample, and each is at most this long

SYNONYMS: dict[str, tuple[str, ...]] = {
    "text": (
        *("text", "sentence", "review", "content", "body", "comment", "message", "tweet", "post"),
        *("document", "doc", "article", "description", "utterance", "query", "question", "title"),
        *("summary", "headline", "phrase", "sms", "email", "txt", "word", "name"),
        *("文本", "内容", "句子", "评论", "正文", "标题", "文章", "texte", "texto", "текст"),
    ),
    "label": (
        *("label", "class", "category", "sentiment", "target", "tag", "stars", "rating", "score"),
        *("polarity", "topic", "genre", "intent", "emotion", "class_index", "y", "language"),
        *("lang", "type", "gold", "labels", "tags", "categories", "classes", "topics", "genres"),
        *("标签", "类别", "分类", "情感", "评分", "метка"),
    ),
    "source": (
        *("source", "src", "source_text", "source_sentence", "src_text", "sentence1", "input"),
        *("input_text", "from", "original", "question", "原文", "源文", "源", "quelle", "исходный"),
    ),
    "target": (
        *("target", "tgt", "trg", "target_text", "target_sentence", "tgt_text", "sentence2"),
        *("output", "output_text", "translation", "translated", "answer"),
        *("译文", "翻译", "目标", "ziel", "перевод", "to"),
    ),
    "references": ("references", "refs"),
    "to": ("to", "target_language", "target_lang", "tgt_lang", "目标语言"),  # where there are many
    "split": ("split", "partition", "subset", "划分"),
    "group": (),  # only ever given: nobody can guess what belongs together
}

READ = ("text", "source", "target")  # roles whose column may say what belongs together, too

OTHERS = {"id", "index", "idx", "date", "time", "user", "author", "url", "lang", "product", "year"}


def find_columns(
    sample: Sequence[Row], wanted: Sequence[str], given: Mapping[str, str]
) -> dict[str, str]:
    """Which column plays each wanted role.

    Args:
        sample: The first rows, a hundred or so.
        wanted: Roles; one that ends in "?" may be missing, and is found by its whole name only.
        given: What a person said, role to column; it wins.
    """
    if not sample:
        raise ValueError("find_columns needs at least one row to look at; got none")
    roles = {role.removesuffix("?"): not role.endswith("?") for role in wanted}
    columns = list(dict.fromkeys(column for row in sample for column in row.values))
    found = _as_told(sample[0].file, columns, roles, given)
    for role in [role for role in roles if role not in found]:
        _take(found, role, _by_whole_name(role, _free(columns, found)))
    for role in READ:
        if role in roles and role not in found and _normal(found.get("group", "")) == role:
            found[role] = found["group"]
    needed = [role for role, must in roles.items() if must and role not in found]
    for role in needed:
        _take(found, role, _by_last_word(role, _free(columns, found)))
    needed = [role for role in needed if role not in found]
    if {*needed} <= {"source", "target"} and len(needed) == len(_free(columns, found)):
        found |= zip(needed, _free(columns, found), strict=True)  # what is left, in order
    for role in [role for role in needed if role not in found]:
        _take(found, role, _by_content(role, _free(columns, found), sample))
    if "references" in roles:
        _share(found)
    missing = [role for role in needed if role not in found]
    if missing:
        example = ",".join(f"{role}=..." for role, must in roles.items() if must)
        kind = "columns are" if len(columns) > 1 else "only column is"
        raise GlassformerError(
            f"{sample[0].file}: no column for {' and '.join(missing)}; the {kind} "
            f"{listed(columns) or 'none'}{_kept_for_groups(found)}; rename them, or name "
            f"them with --columns {example} where the command has it"
        )
    return {role: found[role] for role in roles if role in found}


def _kept_for_groups(found: Mapping[str, str]) -> str:
    return f", and {found['group']} is the group" if "group" in found else ""


def parse_columns(text: str) -> dict[str, str]:
    """Role to column, from the command line.

    >>> parse_columns("text=review,label=stars")
    {'text': 'review', 'label': 'stars'}
    """
    found: dict[str, str] = {}
    for part in text.split(","):
        role, equals, column = (piece.strip() for piece in part.partition("="))
        if not (role and equals and column):
            raise GlassformerError(
                f"--columns: {part.strip()!r} does not say which column plays which role; "
                f"write --columns text=review,label=stars"
            )
        if role not in SYNONYMS:
            raise GlassformerError("--columns: " + unknown("role", role, SYNONYMS))
        if role in found:
            raise GlassformerError(
                f"--columns: {role} is given twice, as {found[role]!r} and {column!r}; keep one"
            )
        found[role] = column
    return found


def is_known_name(cell: str) -> bool:
    """Whether a cell can only be the name of a column: one we know, or words_joined_like_this."""
    name = _normal(cell)
    known = name in OTHERS or any(name in names for names in SYNONYMS.values())
    return known or re.fullmatch(r"[A-Za-z]+(_[A-Za-z0-9]+)+", cell.strip()) is not None


def _as_told(
    file: str, columns: list[str], roles: Mapping[str, bool], given: Mapping[str, str]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for role, column in given.items():
        if role not in roles:
            raise GlassformerError("--columns: " + unknown("role", role, roles))
        if column not in columns:
            raise GlassformerError(f"{file}: " + unknown("column", column, columns))
        if column in found.values():
            raise GlassformerError(
                f"--columns: {column!r} cannot be two things at once "
                f"({', '.join(f'{r}={c}' for r, c in given.items())}); give each role its own"
            )
        found[role] = column
    return found


def _take(found: dict[str, str], role: str, column: str | None) -> None:
    if column is not None:
        found[role] = column


def _share(found: dict[str, str]) -> None:
    """One column may hold the target and its references: the first of them is the target."""
    if "references" in found:
        found.setdefault("target", found["references"])
    elif _normal(found.get("target", "")) in SYNONYMS["references"]:
        found["references"] = found["target"]


def _free(columns: list[str], found: Mapping[str, str]) -> list[str]:
    return [column for column in columns if column not in found.values()]


def _by_whole_name(role: str, columns: list[str]) -> str | None:
    normal = {_normal(column): column for column in reversed(columns)}
    return next((normal[name] for name in SYNONYMS.get(role, ()) if name in normal), None)


def _by_last_word(role: str, columns: list[str]) -> str | None:
    last = {_normal(column).split("_")[-1]: column for column in reversed(columns)}
    return next((last[name] for name in SYNONYMS.get(role, ()) if name in last), None)


def _by_content(role: str, columns: list[str], sample: Sequence[Row]) -> str | None:
    """The text is the longest, a label is a list or repeats itself."""
    kinds = {column: {type(row.values.get(column)) for row in sample} for column in columns}
    lists = [column for column in columns if list in kinds[column]]
    texts = [column for column in columns if not kinds[column] & {list, NoText}]
    if role == "text":
        return max(texts, key=lambda column: sum(len(row[column]) for row in sample), default=None)
    if role == "label":
        return lists[0] if lists else _label_by_content(texts, sample)
    return None


def _label_by_content(columns: list[str], sample: Sequence[Row]) -> str | None:
    """The one with the fewest values, two at least if any has; sorted data may begin with one."""
    values = {column: {row[column] for row in sample} for column in columns}
    fine = [
        column
        for column in columns
        if len(values[column]) <= max(2, min(FEW, len(sample) // 2))
        and max(map(len, values[column])) <= FEW
    ]
    return min(
        fine, key=lambda column: (len(values[column]) < 2, len(values[column])), default=None
    )


def _normal(name: str) -> str:
    """A name without the accidents of writing: `Review Text` and `reviewText` are review_text."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", unicodedata.normalize("NFKC", name))
    return re.sub(r"[\W_]+", "_", spaced).strip("_").casefold()
