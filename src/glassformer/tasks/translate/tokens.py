"""Tokens of pairs: one vocabulary for both sides, or one each, and tags for target languages.

Sides in the same script (English and German) share a vocabulary, so that names and numbers have the
same tokens on both; other sides (Chinese and English, letters and phonemes) have their own. A tag
before the source selects the target language (Johnson et al., 2017).
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
from jaxtyping import Int

from glassformer.config import TokenizerConfig
from glassformer.config.values import fitting
from glassformer.data.jagged import Jagged
from glassformer.data.samples import Sample, Samples
from glassformer.data.text.subwords import Words
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.files import write_json
from glassformer.tasks.shared.text import SHORT, refuse_other_tokens, trained

TAGS = "tags.json"
LOOKED_AT = 2000  # rows from which kinds are chosen
CLOSED, OFTEN = 128, 8  # symbols: at most 128 different words, each 8 times on average
SHARED = ("kind", "vocabulary", "lowercase", "simplified")  # must agree in a joint vocabulary
WRITTEN_ALIKE = 0.5  # of the target's characters are in the source, too
NOT_IN_TAGS = {*"<>"}  # a tag is typed as <de> before a text


@dataclass(frozen=True, slots=True)
class PairTokens:
    """The tokenizers of both sides; the same object if they share one.

    Attributes:
        tags: Target languages, each one token after those of the source.
    """

    source: Tokenizer
    target: Tokenizer
    tags: tuple[str, ...] = ()

    @property
    def joint(self) -> bool:
        """Whether both sides share a vocabulary."""
        return self.source is self.target

    @property
    def source_size(self) -> int:
        """Size of the source vocabulary, tags included."""
        return self.source.size + len(self.tags)

    @property
    def target_size(self) -> int:
        """Size of the target vocabulary; tags count if both sides share it."""
        return self.source_size if self.joint else self.target.size

    def tag(self, language: str, where: str) -> int:
        """The token of a target language."""
        if not language:
            raise GlassformerError(
                f"{where}: has no target language; fill in the column `to`, "
                f"or name it with --columns to=..."
            )
        if language not in self.tags:
            raise GlassformerError(
                f"{where}: unknown target language {language!r}; this model translates into "
                f"{', '.join(self.tags)}"
            )
        return self.source.size + self.tags.index(language)

    def tagged(self, text: str) -> tuple[str, int | None]:
        """A text as typed, `<de> What a film`, split into the text and the token of its tag."""
        if not self.tags:
            return text, None
        head, _, rest = text.strip().partition(">")
        if not head.startswith("<") or not rest.strip():
            raise GlassformerError(
                f"{text[:40]!r} has no target language; start it with one of "
                f"{', '.join(f'<{tag}>' for tag in self.tags)}"
            )
        return rest.strip(), self.tag(head[1:], repr(text[:40]))

    def language(self, tag: int | None) -> str:
        """The target language of a tag; empty if there are none."""
        return "" if tag is None else self.tags[tag - self.source.size]

    def as_typed(self, sample: Sample) -> str:
        """The source of a row as it is typed, with its tag."""
        tag = f"<{sample['to']}> " if self.tags and sample.get("to") else ""
        return tag + str(sample["source"])

    def read(self, rows: Jagged, tags: int | Int[np.ndarray, " rows"] | None) -> Jagged:
        """The tokens of sources as the model reads them, with tags and end tokens."""
        ended = rows.after(self.source.end)
        return ended if tags is None else ended.before(tags)

    def save(self, folder: Path) -> None:
        """Write both tokenizers into a run folder."""
        self.source.save(folder / "tokenizer.json")
        if not self.joint:
            self.target.save(folder / "target.json")
        write_json({"tags": self.tags}, folder / TAGS)

    @staticmethod
    def load(folder: Path) -> "PairTokens":
        """What `save` wrote."""
        source = Tokenizer.load(folder / "tokenizer.json")
        other = folder / "target.json"
        target = Tokenizer.load(other) if other.exists() else source
        return PairTokens(source, target, _read_tags(folder / TAGS))


def _read_tags(path: Path) -> tuple[str, ...]:
    """The target languages of a run."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        found: tuple[str, ...] = fitting(dict[str, tuple[str, ...]], values, "all of it")["tags"]
    except (OSError, ValueError, KeyError, GlassformerError) as error:
        raise GlassformerError(
            f"{path}: not the target languages of a run ({error}); copy the run again"
        ) from None
    return found


@dataclass(frozen=True, slots=True)
class Sides:
    """The tokenizer settings of both sides."""

    source: TokenizerConfig
    target: TokenizerConfig
    joint: bool


def settle_sides(
    source: TokenizerConfig, target: TokenizerConfig | None, joint: bool | None, samples: Samples
) -> Sides:
    """The kinds of tokens, and whether both sides share them, chosen from the first rows.

    Args:
        target: None for the same settings as the source.
    """
    head = list(islice(samples.of("train"), LOOKED_AT))
    texts = {side: [row[side] for row in head] for side in ("source", "target")}
    reads = settled(source, texts["source"])
    if target is None:
        free = are_symbols(texts["target"]) and not joint  # whatever the source's kind
        writes = settled(
            replace(source, kind="auto", dropout=0.0) if free else source, texts["target"]
        )
    else:
        writes = settled(target, texts["target"])
    unlike = [name for name in SHARED if getattr(reads, name) != getattr(writes, name)]
    if joint is None:
        joint = not unlike and written_alike(head)
    elif joint and target is None:
        writes = reads
    elif joint and unlike:
        name = unlike[0]
        raise GlassformerError(
            f"task.joint=true needs one kind of tokens, but {name} is {getattr(reads, name)} for "
            f"the source and {getattr(writes, name)} for the target; drop task.target"
        )
    return Sides(reads, writes, joint)


def learn_pair_tokens(sides: Sides, samples: Samples) -> PairTokens:
    """Tokenizers trained on the training split only."""
    tags = tuple(sorted(targets_named(samples)))
    if sides.joint:
        reads = trained(sides.source, both(samples))
        return PairTokens(reads, reads, tags)
    reads = trained(sides.source, samples.values("source", "train"))
    writes = trained(sides.target, samples.values("target", "train"))
    return PairTokens(reads, writes, tags)


def take_pair_tokens(
    origin: Path,
    source: TokenizerConfig,
    target: TokenizerConfig | None,
    joint: bool | None,
    samples: Samples,
) -> PairTokens:
    """The tokenizers of another run; if that has none for the target, it is trained."""
    tags = tuple(sorted(targets_named(samples)))
    if not (origin / TAGS).exists():
        reads = Tokenizer.load(origin / "tokenizer.json")
        refuse_other_tokens(origin, "data.tokenizer", source, reads)
        refuse_other_joint(origin, joint, known_joint=False)
        writes = settle_sides(source, target, False, samples).target
        return PairTokens(reads, trained(writes, samples.values("target", "train")), tags)
    known = PairTokens.load(origin)
    refuse_other_tokens(origin, "data.tokenizer", source, known.source)
    refuse_other_joint(origin, joint, known_joint=known.joint)
    if target is not None:
        refuse_other_tokens(origin, "task.target", target, known.target)
    if tags and not known.tags:
        raise GlassformerError(
            f"{origin}: has one target language, but the data names {', '.join(tags)}; "
            f"use a run that was trained with these, or train without --from"
        )
    return known


def refuse_other_joint(origin: Path, requested: bool | None, *, known_joint: bool) -> None:
    """Refuse to change whether both sides share the tokens of another run."""
    if requested not in (None, known_joint):
        have = "share a vocabulary" if known_joint else "have separate vocabularies"
        raise GlassformerError(
            f"task.joint={str(requested).lower()}, but in {origin} both sides {have}; "
            f"leave it out, or train without --from"
        )


def targets_named(samples: Samples) -> set[str]:
    """The target languages in the data, refused if they cannot be typed before a text."""
    found: dict[str, str] = {}
    for row in samples.of("train"):
        found.setdefault(row.get("to", ""), row["where"])
    for tag, where in found.items():
        if not can_be_typed(tag):
            raise GlassformerError(
                f"{where}: the target language {tag!r} cannot be typed as <{tag}> before a "
                f"text; remove <, > and surrounding spaces"
            )
    return {*found} - {""}


def can_be_typed(tag: str) -> bool:
    """Whether a target language can be typed before a text, as in <de>.

    >>> can_be_typed("pt-br"), can_be_typed("<x>")
    (True, False)
    """
    return tag == tag.strip() and not {*tag} & NOT_IN_TAGS


def settled(config: TokenizerConfig, texts: Sequence[str]) -> TokenizerConfig:
    """The settings with a kind: characters for words and names, BPE for sentences.

    Symbols, such as phonemes, are kept whole.
    """
    if config.lowercase is None:
        config = replace(config, lowercase=False)
    if config.kind != "auto":
        return config
    if are_symbols(texts):
        return replace(config, kind="words")
    words = np.mean([len(text.split()) for text in texts])
    short = np.mean([len(text) for text in texts]) <= SHORT and words < 4
    return replace(config, kind="characters" if short else "bpe")


def are_symbols(texts: Sequence[str]) -> bool:
    """Whether texts consist of few different words that repeat often, such as phonemes.

    Words with punctuation attached are not symbols: they would not be restored exactly.

    >>> are_symbols(["R EH D", "D EH R"] * 5), are_symbols(["What a film", "A red door"])
    (True, False)
    >>> are_symbols(["A red door."] * 20)
    False
    """
    words = [word for text in texts for word in text.split()]
    kinds = set(words)
    often = len(words) >= max(OFTEN * len(kinds), len(texts) + 1)
    return len(kinds) <= CLOSED and often and all(map(Words.is_one_word, kinds))


def written_alike(rows: Sequence[dict[str, str]]) -> bool:
    """Whether the source has most of the target's characters."""
    source, target = (
        {character for row in rows for character in row[side] if character.isalnum()}
        for side in ("source", "target")
    )
    return len(source & target) >= WRITTEN_ALIKE * len(target)


def both(samples: Samples) -> Iterator[str]:
    """The texts of both sides."""
    sides = samples.values("source", "train"), samples.values("target", "train")
    return chain.from_iterable(zip(*sides, strict=True))
