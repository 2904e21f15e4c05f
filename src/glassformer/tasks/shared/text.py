"""What jobs that read text share: choosing and learning tokens, indexing, and batches of rows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.utils._pytree import register_dataclass

from glassformer.config import MachineConfig, ModelConfig, TokenizerConfig, require
from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Sample, Samples
from glassformer.data.text.coders import chunked
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import Predictor, SomeTask
from glassformer.tasks.shared.losses import IGNORED

FILLER = 64  # tokens of a filler row at most: short ones cost attention little
TEXT_FRONTENDS = ("tokens", "ngrams")
SHORT = 40  # characters: texts of names rather than of sentences


@dataclass(frozen=True, slots=True)
class TextBatch:
    """Rows of tokens, and what is known about each.

    Attributes:
        ids: (B, T) padded or (N,) packed.
        labels: The label of each row, or of each of the positions; `IGNORED` counts nothing.
        row_ids: The row of the split that each label belongs to.
        positions: Where in the batch the labels belong; None where each row has one.
    """

    ids: Int[Tensor, "B T"] | Int[Tensor, " N"]
    layout: Layout
    labels: Tensor
    row_ids: Int[Tensor, " labels"]
    positions: Int[Tensor, " positions"] | None = None

    @property
    def tokens(self) -> int:
        """How many there are, without padding."""
        assert self.layout.tokens is not None  # made on the CPU, where they are counted
        return self.layout.tokens

    def to(self, device: torch.device) -> "TextBatch":
        """The same on another device."""
        return TextBatch(
            self.ids.to(device, non_blocking=True),
            self.layout.to(device),
            self.labels.to(device, non_blocking=True),
            self.row_ids.to(device, non_blocking=True),
            None if self.positions is None else self.positions.to(device, non_blocking=True),
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows, the longest of them, tokens, and labels at positions; none when padded."""
        if not self.layout.is_packed:
            return ()
        layout = self.layout
        positions = 0 if self.positions is None else len(self.positions)
        return layout.rows, layout.longest, len(self.ids), positions

    def filled(self, sizes: tuple[int, ...]) -> "TextBatch":
        """The same in a fixed shape: filler rows, and labels that are ignored."""
        rows, longest, tokens, positions = sizes
        rows += filler_rows(longest, tokens)
        ids, layout = filled_pack(self.ids, self.layout, rows, longest, tokens)
        if self.positions is None:
            labels = pad_first(self.labels, layout.rows, 0)
            return TextBatch(ids, layout, labels, pad_first(self.row_ids, layout.rows, -1))
        return TextBatch(
            ids,
            layout,
            pad_first(self.labels, positions, IGNORED),
            pad_first(self.row_ids, positions, -1),
            pad_first(self.positions, positions, 0),
        )

    def twice(self) -> "TextBatch":
        """All rows, and then all of them again."""
        positions = self.positions
        if positions is not None:
            positions = torch.cat([positions, positions + self.ids.numel()])
        again = (torch.cat([x, x]) for x in (self.ids, self.labels, self.row_ids))
        ids, labels, row_ids = again
        return TextBatch(ids, self.layout.twice(), labels, row_ids, positions)


register_dataclass(TextBatch)


class TextPredictor(Predictor[SomeTask, str]):
    """Predicts from texts."""

    def from_sample(self, sample: Sample) -> str:
        return str(sample["text"])


def filled_pack(
    ids: Int[Tensor, " N"], layout: Layout, rows: int, longest: int, tokens: int
) -> tuple[Int[Tensor, " tokens"], Layout]:
    """A pack and its layout in a fixed shape; the fillers hold token 0."""
    layout = Layout.packed(layout.lengths, longest=longest, budget=tokens, rows=rows)
    return pad_first(ids, tokens, 0), layout


def filler_rows(longest: int, tokens: int) -> int:
    """How many rows can fill a whole pack."""
    return -(-tokens // min(longest, FILLER))


def pad_first(x: Tensor, size: int, value: int) -> Tensor:
    """The tensor with its first axis filled up to a size."""
    return F.pad(x, (0, 0) * (x.ndim - 1) + (0, size - len(x)), value=value)


def text_batch(rows: Jagged, *, packed: bool) -> tuple[Tensor, Layout]:
    """Rows of tokens as one tensor, with their layout."""
    lengths, values = torch.from_numpy(rows.lengths), torch.from_numpy(rows.values).long()
    if packed:
        return values, Layout.packed(lengths)
    layout = Layout.padded(lengths)
    ids = torch.zeros(layout.rows, layout.longest, dtype=torch.long)
    return ids.masked_scatter(layout.real, values), layout


def growing(inputs: Iterable[str], most: int, characters: int = 0) -> Iterator[list[str]]:
    """The inputs some at a time: the first alone, for a quick answer, then more and more.

    Args:
        most: Inputs at a time; more where they do not have so many characters together.

    >>> list(growing("abcdefgh", 3))
    [['a'], ['b', 'c'], ['d', 'e', 'f'], ['g', 'h']]
    >>> list(growing(["a", "b", "c", "long", "long", "d", "e"], 1, 6))
    [['a'], ['b', 'c'], ['long', 'long', 'd'], ['e']]
    """
    rest, size = iter(inputs), 1
    while texts := list(islice(rest, size)):
        yield texts
        mean = 1 + sum(map(len, texts)) / len(texts)  # with the end of the line
        size = min(2 * size, max(most, round(characters / mean)))


def hidden_at_random(
    rows: Jagged, share: float, mask: int, noise: Float[np.ndarray, " values"]
) -> Jagged:
    """Rows with a share of their tokens replaced by the mask; the first of each stays.

    Args:
        noise: A number in [0, 1) for each token.
    """
    hidden = (noise < share) & (rows.places > 0)
    return Jagged(np.where(hidden, mask, rows.values), rows.lengths)


def on_gpu(machine: MachineConfig) -> bool:
    """Whether a run is trained on a GPU, where packing rows always pays."""
    return machine.device in ("auto", "cuda") and torch.cuda.is_available()


def take_tokens(
    config: TokenizerConfig, samples: Samples, origin: Path | None
) -> tuple[Tokenizer, TokenizerConfig]:
    """The tokenizer of another run, or one learned from the training split, and its settings."""
    if origin is None:
        tokenizer = learn_tokens(config, samples)
    else:
        tokenizer = Tokenizer.load(origin / "tokenizer.json")
        refuse_other_tokens(origin, "data.tokenizer", config, tokenizer)
    return tokenizer, as_settled(config, tokenizer)


def learn_tokens(config: TokenizerConfig, samples: Samples) -> Tokenizer:
    """A tokenizer learned from the training split alone."""
    if config.kind == "auto":
        config = replace(config, kind=kind_for(samples))
    if config.lowercase is None:
        config = replace(config, lowercase=config.kind == "words")
    return trained(config, samples.values("text", "train"))


def trained(config: TokenizerConfig, texts: Iterable[str]) -> Tokenizer:
    """A tokenizer of these texts, by settings that leave nothing open."""
    return Tokenizer.train(
        config.kind,
        texts,
        vocabulary=config.vocabulary,
        lowercase=bool(config.lowercase),
        simplified=config.simplified,
    )


def refuse_other_tokens(
    origin: Path, where: str, wanted: TokenizerConfig, known: Tokenizer
) -> None:
    """What a run reads tokens with cannot be changed by the one that begins with it."""
    given = {
        "kind": None if wanted.kind == "auto" else wanted.kind,
        "lowercase": wanted.lowercase,
        "simplified": wanted.simplified or None,
    }
    for name, value in given.items():
        if value is not None and value != getattr(known, name):
            raise GlassformerError(
                f"{where}.{name}={value} is not what {origin} was trained with "
                f"({getattr(known, name)}); leave it out, or train without --from"
            )


def as_settled(config: TokenizerConfig, tokens: Tokenizer) -> TokenizerConfig:
    """The settings that say what the tokens are."""
    return replace(
        config,
        kind=tokens.kind,
        vocabulary=tokens.size,
        lowercase=tokens.lowercase,
        simplified=tokens.simplified,
    )


def reaching(model: ModelConfig, longest: int) -> ModelConfig:
    """The model with positions for so many tokens, refused if it does not read tokens."""
    require(
        model.frontend.kind in TEXT_FRONTENDS,
        f"model.frontend.kind = {model.frontend.kind} does not read text; choose from "
        f"{', '.join(TEXT_FRONTENDS)}",
    )
    if model.encoder is None or model.encoder.max_length >= longest:
        return model
    return replace(model, encoder=replace(model.encoder, max_length=longest))


def kind_for(samples: Samples) -> str:
    """Characters for short texts such as names, words for others."""
    lengths = [len(text) for text in islice(samples.values("text", "train"), 2000)]
    return "characters" if np.mean(lengths) <= SHORT else "words"


def index_texts(tokenizer: Tokenizer, samples: Samples, data: Path) -> Ragged:
    """The tokens of every sample, in a memory-mapped file."""
    return Ragged.write(data / "tokens", token_rows(tokenizer, samples), np.int32)


def token_rows(
    tokenizer: Tokenizer, samples: Samples, role: str = "text"
) -> Iterator[Shaped[np.ndarray, " tokens"]]:
    """The tokens of every sample, tokenised in chunks."""
    for texts in chunked(samples.values(role)):
        yield from tokenizer.encode(texts)
