"""Tokens of pairs: one vocabulary for both sides, or one each, and tags for target languages.

Sides that are written alike (English and German) share a vocabulary, so that names and numbers
look alike on both; sides that are not (Chinese and English, letters and phonemes) have their own.
A tag before the source tells in which language to write (Johnson et al., 2017).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np

from glassformer.config import TokenizerConfig
from glassformer.data.samples import Samples
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.files import write_json
from glassformer.tasks.text import SHORT, Row

LOOKED_AT = 2000  # rows by which kinds are chosen
CLOSED = 256  # different words or fewer are symbols, such as phonemes
WRITTEN_ALIKE = 0.5  # of the target's characters that the source has, too


@dataclass(frozen=True, slots=True)
class PairTokens:
    """Both sides' tokenizers; the same object where they share one.

    Attributes:
        tags: Target languages, each a token after those of the source.
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
        """Tokens that are read, tags among them."""
        return self.source.size + len(self.tags)

    @property
    def target_size(self) -> int:
        """Tokens that are written; with one vocabulary the tags are counted, too."""
        return self.source_size if self.joint else self.target.size

    def tag(self, language: str, where: str) -> int:
        """The token of a target language."""
        if language not in self.tags:
            raise GlassformerError(
                f"{where}: no target language {language!r}; this model writes "
                f"{', '.join(self.tags) or 'one language, without tags'}"
            )
        return self.source.size + self.tags.index(language)

    def tagged(self, text: str) -> tuple[str, int | None]:
        """A text as it is typed, `<de> What a film`, and the token of its tag, if it has one."""
        if not self.tags:
            return text, None
        head, _, rest = text.strip().partition(">")
        if not head.startswith("<") or not rest.strip():
            raise GlassformerError(
                f"{text[:40]!r} does not say in which language to write; begin it with one of "
                f"{', '.join(f'<{tag}>' for tag in self.tags)}"
            )
        return rest.strip(), self.tag(head[1:], repr(text[:40]))

    def read(self, ids: Row, tag: int | None) -> Row:
        """The tokens of a source as the model reads them, with their tag and end."""
        before = [] if tag is None else [tag]
        return np.concatenate([before, ids, [self.source.end]]).astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write both into a run folder."""
        self.source.save(folder / "tokenizer.json")
        if not self.joint:
            self.target.save(folder / "target.json")
        write_json({"tags": self.tags}, folder / "tags.json")

    @staticmethod
    def load(folder: Path) -> "PairTokens":
        """What `save` wrote."""
        source = Tokenizer.load(folder / "tokenizer.json")
        other = folder / "target.json"
        tags = json.loads((folder / "tags.json").read_text(encoding="utf-8"))["tags"]
        return PairTokens(source, Tokenizer.load(other) if other.exists() else source, tuple(tags))


@dataclass(frozen=True, slots=True)
class Sides:
    """What is settled about the tokens of both sides."""

    source: TokenizerConfig
    target: TokenizerConfig
    joint: bool


def learn_pair_tokens(
    source: TokenizerConfig, target: TokenizerConfig, joint: bool | None, samples: Samples
) -> tuple[PairTokens, Sides]:
    """Tokenizers learned from the training part alone, with what was settled."""
    looked_at = list(islice(samples.of("train"), LOOKED_AT))
    source = settled(source, [row["source"] for row in looked_at])
    target = settled(target, [row["target"] for row in looked_at])
    alike = (source.kind, source.lowercase) == (target.kind, target.lowercase)
    if joint is None:
        joint = alike and written_alike(looked_at)
    elif joint and not alike:
        raise GlassformerError(
            f"task.joint=true needs one kind of tokens, but the source has {source.kind} and the "
            f"target {target.kind}; set data.tokenizer.kind and task.target.kind alike"
        )
    tags = sorted({row["to"] for row in samples.of("train") if "to" in row})
    if joint:
        reads = trained(source, both(samples))
        tokens = PairTokens(reads, reads, tuple(tags))
    else:
        reads = trained(source, (row["source"] for row in samples.of("train")))
        writes = trained(target, (row["target"] for row in samples.of("train")))
        tokens = PairTokens(reads, writes, tuple(tags))
    return tokens, Sides(
        replace(source, vocabulary=tokens.source.size),
        replace(target, vocabulary=tokens.target.size),
        joint,
    )


def settled(config: TokenizerConfig, texts: Sequence[str]) -> TokenizerConfig:
    """The settings with a kind: characters for words and names, BPE for sentences.

    Few different words with blanks between them are symbols, and stay whole.
    """
    if config.lowercase is None:
        config = replace(config, lowercase=False)
    if config.kind != "auto":
        return config
    words = [text.split() for text in texts]
    if max(map(len, words), default=0) > 1 and len({w for row in words for w in row}) <= CLOSED:
        return replace(config, kind="words")
    short = np.mean([len(text) for text in texts]) <= SHORT and np.mean(list(map(len, words))) < 4
    return replace(config, kind="characters" if short else "bpe")


def written_alike(rows: Sequence[dict[str, str]]) -> bool:
    """Whether the source has most of the target's characters."""
    source, target = (
        {character for row in rows for character in row[side] if character.isalnum()}
        for side in ("source", "target")
    )
    return len(source & target) >= WRITTEN_ALIKE * len(target)


def both(samples: Samples) -> Iterator[str]:
    """The texts of both sides."""
    for row in samples.of("train"):
        yield row["source"]
        yield row["target"]


def trained(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    """A tokenizer of these texts."""
    return Tokenizer.train(
        config.kind, texts, vocabulary=config.vocabulary, lowercase=bool(config.lowercase)
    )
