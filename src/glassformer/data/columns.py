"""Which column plays which role: as given, else by name, else by content.

A column is recognised by a name of its role, earlier ones first, by its full name ("Review Text")
before its last word ("airline_sentiment"). COLUMN_NAMES lists common column names, whatever the
job; they also tell a header from a data row. A role may have names of its own.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glassformer.data.rows import Row, listed
from glassformer.errors import GlassformerError, unknown

COLUMN_NAMES: dict[str, tuple[str, ...]] = {
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
}

OTHERS = {"id", "index", "idx", "date", "time", "user", "author", "url", "lang", "product", "year"}

Columns = dict[str, str]  # role to column


@dataclass(frozen=True, kw_only=True, slots=True)
class Role:
    """What a column is to a job.

    Attributes:
        name: As in a sample, and in `--columns`.
        names: Names of such a column, the likeliest first.
        required: Whether a row without it is skipped. A role that is not required is found by its
            full name only.
        several: Whether it may hold several values, as a list.
        answer: Whether it is what a model predicts, rather than its input.
        guess: Finds its column by the content of unassigned columns, where no name matches.
        by_content: Whether content alone tells its column, such as names of image files.
        lacking: Says why none of the unassigned columns can be its column, if it is clear.
        prefer: Chooses by content among columns that match by name, the likeliest first.
    """

    name: str
    names: tuple[str, ...] = ()
    required: bool = True
    several: bool = False
    answer: bool = False
    guess: Callable[[Sequence[str], Sequence[Row]], str | None] | None = None
    by_content: bool = False
    lacking: Callable[[Sequence[str], Sequence[Row]], str] | None = None
    prefer: Callable[[Sequence[str], Sequence[Row]], str] | None = None


GROUP = Role(name="group")  # always given, never guessed
SPLIT = Role(name="split", names=COLUMN_NAMES["split"], required=False)

Guess = Callable[[Columns, Sequence[str], Sequence[Row]], Columns]


def find_columns(
    head: Sequence[Row], roles: Sequence[Role], given: Mapping[str, str], guess: Guess
) -> Columns:
    """Which column plays each role.

    Args:
        head: The first rows, a hundred or so.
        given: Columns by role, as specified by the user; these win.
        guess: Adds to what was found by name, given the unassigned columns.
    """
    if not head:
        raise ValueError("find_columns needs at least one row to look at; got none")
    columns = list(dict.fromkeys(column for row in head for column in row.values))
    found = _as_given(head[0].file, columns, roles, given)
    found = find_by_name(columns, roles, found)
    for role in roles:
        if role.name not in found and _is_grouped_by(role, found.get("group", "")):
            found[role.name] = found["group"]
    required = [role for role in roles if role.required]
    for role in required:
        if role.name not in found:
            _take(found, role, _by_name(role, _free(columns, found), last_word=True))
        if role.prefer is not None and role.name in found and role.name not in given:
            found[role.name] = _preferred(role, found, columns, head)
    found = guess(found, _free(columns, found), head)
    missing = [role.name for role in required if role.name not in found]
    if missing:
        example = ",".join(f"{role.name}=..." for role in required)
        kind = "columns are" if len(columns) > 1 else "only column is"
        group = f", and {found['group']} is the group" if "group" in found else ""
        reasons = (
            role.lacking(_free(columns, found), head)
            for role in required
            if role.name in missing and role.lacking is not None
        )
        why = "".join(f"; {reason}" for reason in reasons if reason)
        raise GlassformerError(
            f"{head[0].file}: no column for {' and '.join(missing)}; the {kind} "
            f"{listed(columns) or 'none'}{group}{why}; rename them, or name them "
            f"with --columns {example}"
        )
    return {role.name: found[role.name] for role in roles if role.name in found}


def _preferred(role: Role, found: Columns, columns: list[str], head: Sequence[Row]) -> str:
    """The column for a role among those that match its names; one called like it is no guess."""
    first, others = found[role.name], _free(columns, found)
    if role.prefer is None or normal_name(first) == role.name:
        return first
    matching = [
        column
        for column in others
        if _by_name(role, [column]) or _by_name(role, [column], last_word=True)
    ]
    return role.prefer([first, *matching], head)


def runners_up(
    head: Sequence[Row], roles: Sequence[Role], given: Mapping[str, str], found: Columns
) -> Columns:
    """For each role whose column was guessed, another column that fits as well, if there is one.

    A column that is called like its role is no guess. Inputs are compared by name, answers also by
    content.
    """
    free = _free(list(dict.fromkeys(column for row in head for column in row.values)), found)
    others: Columns = {}
    for role in roles:
        column = found.get(role.name, "")
        if role.required and column and role.name not in given and normal_name(column) != role.name:
            other = _by_name(role, free) or _by_name(role, free, last_word=True)
            if other is None and role.answer and role.guess is not None:
                other = role.guess(free, head)
            _take(others, role, other)
    return others


def runner_up_lines(columns: Columns, others: Columns) -> list[str]:
    """What to say about columns that fit as well as those that were taken.

    >>> runner_up_lines({"text": "body", "label": "priority"}, {"label": "queue"})
    ["label = 'priority'; 'queue' fits as well: choose with --columns label=..."]
    """
    return [
        f"{role} = {columns[role]!r}; {other!r} fits as well: choose with --columns {role}=..."
        for role, other in others.items()
    ]


def find_by_name(
    columns: Sequence[str], roles: Sequence[Role], known: Mapping[str, str] | None = None
) -> Columns:
    """The known columns, and those that match a full name of their role."""
    found = dict(known or {})
    for role in roles:
        if role.name not in found:
            _take(found, role, _by_name(role, _free(columns, found)))
    return found


def _is_grouped_by(role: Role, group: str) -> bool:
    """Whether the group column also plays this role, by its name."""
    return role.required and not role.several and bool(group) and normal_name(group) == role.name


def parse_columns(text: str) -> dict[str, str]:
    """Role to column, from the command line.

    >>> parse_columns("text=review,label=stars")
    {'text': 'review', 'label': 'stars'}
    """
    found: dict[str, str] = {}
    for pair in text.split(","):
        role, equals, column = (piece.strip() for piece in pair.partition("="))
        if not (role and equals and column):
            raise GlassformerError(
                f"--columns: {pair.strip()!r} is not of the form ROLE=COLUMN; "
                f"write --columns text=review,label=stars"
            )
        if role in found:
            raise GlassformerError(
                f"--columns: {role} is given twice, as {found[role]!r} and {column!r}; keep one"
            )
        found[role] = column
    return found


def parse_header(given: object) -> bool | None:
    """Whether the first row is a header, as given on the command line or in Python.

    >>> parse_header("yes"), parse_header("no"), parse_header(None)
    (True, False, None)
    """
    if given is None or isinstance(given, bool):
        return given
    if given in ("yes", "no"):
        return given == "yes"
    raise GlassformerError(f"--header must be yes or no, got {given!r}; leave it out to decide")


def columns_line(
    columns: Mapping[str, str], header: bool | None = None, unread: Sequence[str] = ()
) -> str:
    """Which columns are read, for people: by role, and whether the first row names them.

    >>> columns_line({"text": "message", "label": "spam"}, True, ["id"])
    "text = 'message', label = 'spam'; header: yes; not read: 'id'"
    """
    parts = [", ".join(f"{role} = {column!r}" for role, column in columns.items())]
    if header is not None:
        parts.append(f"header: {'yes' if header else 'no'}")
    if unread:
        parts.append(f"not read: {listed([repr(column) for column in unread])}")
    return "; ".join(parts)


def is_known_name(cell: str) -> bool:
    """Whether a cell must be a column name: a known one, or words_joined_like_this."""
    name = normal_name(cell)
    known = name in OTHERS or any(name in names for names in COLUMN_NAMES.values())
    return known or re.fullmatch(r"[A-Za-z]+(_[A-Za-z0-9]+)+", cell.strip()) is not None


def _as_given(
    file: str, columns: list[str], roles: Sequence[Role], given: Mapping[str, str]
) -> Columns:
    found: Columns = {}
    names = [role.name for role in roles]
    for role, column in given.items():
        if role not in names:
            raise GlassformerError(
                "--columns: " + unknown("role", role, dict.fromkeys([*names, GROUP.name]))
            )
        if column not in columns:
            raise GlassformerError(f"{file}: " + unknown("column", column, columns))
        if column in found.values():
            raise GlassformerError(
                f"--columns: {column!r} cannot play two roles "
                f"({', '.join(f'{r}={c}' for r, c in given.items())}); give each its own column"
            )
        found[role] = column
    return found


def _take(found: Columns, role: Role, column: str | None) -> None:
    if column is not None:
        found[role.name] = column


def _free(columns: Sequence[str], found: Mapping[str, str]) -> list[str]:
    return [column for column in columns if column not in found.values()]


def _by_name(role: Role, columns: list[str], *, last_word: bool = False) -> str | None:
    normal = {normal_name(column): column for column in reversed(columns)}
    if last_word:
        normal = {name.split("_")[-1]: column for name, column in normal.items()}
    return next((normal[name] for name in role.names if name in normal), None)


def normal_name(name: str) -> str:
    """Normalise a name: `Review Text` and `reviewText` become review_text."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", unicodedata.normalize("NFKC", name))
    return re.sub(r"[\W_]+", "_", spaced).strip("_").casefold()
