"""What jobs that read text share: choosing and learning tokens, and indexing."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped

from glassformer.config import MachineConfig, ModelConfig, TokenizerConfig, require
from glassformer.data.jagged import Jagged
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Sample, Samples
from glassformer.data.text.coders import chunked
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import Predictor, SomeTask

TEXT_FRONTENDS = ("tokens", "ngrams")
SHORT = 40  # characters: texts of names rather than of sentences
# What `nothing_known` looks for, by kind of tokens.
KNOWN_BY = {
    "bytes": "byte",
    "characters": "character",
    "words": "word",
    "bpe": "character",
    "unigram": "piece",
}


class TextPredictor(Predictor[SomeTask, str]):
    """Predicts from texts."""

    blank: Any = ""

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """What its texts are read with."""

    def tokens_of(self, text: str) -> int:
        """How many tokens a text is read as."""
        return len(self.tokenizer.encode([text])[0])

    def are_unknown(self, texts: Sequence[str]) -> list[bool]:
        """Whether nothing in each text was seen in training."""
        return nothing_known_in(self.tokenizer, Jagged.of(self.tokenizer.encode(texts)))

    def from_sample(self, sample: Sample) -> str:
        return str(sample["text"])


def growing(inputs: Iterable[str], most: int, characters: int = 0) -> Iterator[list[str]]:
    """The inputs some at a time: the first alone, for a quick answer, then more and more.

    Of a list, which is there as a whole, it is the most from the beginning.

    Args:
        most: Inputs at a time; more where they do not have so many characters together.

    >>> list(growing("abcdefgh", 3))
    [['a'], ['b', 'c'], ['d', 'e', 'f'], ['g', 'h']]
    >>> list(growing(["a", "b", "c", "d"], 3))
    [['a', 'b', 'c'], ['d']]
    >>> list(growing(iter(["a", "b", "c", "long", "long", "d", "e"]), 1, 6))
    [['a'], ['b', 'c'], ['long', 'long', 'd'], ['e']]
    """
    rest, size = iter(inputs), most if isinstance(inputs, list) else 1
    while texts := list(islice(rest, size)):
        yield texts
        mean = 1 + sum(map(len, texts)) / len(texts)  # with the end of the line
        size = min(2 * size, max(most, round(characters / mean)))


def unseen(tokenizer: Tokenizer, what: str = "this text") -> str:
    """Why there is no answer to a text of which nothing is known.

    >>> unseen(Tokenizer.train("words", ["what a film"], vocabulary=100))
    'no word of this text was seen in training'
    """
    return f"no {KNOWN_BY[tokenizer.kind]} of {what} was seen in training"


def nothing_known(tokenizer: Tokenizer, ids: Shaped[np.ndarray, " tokens"]) -> bool:
    """Whether all tokens of a text are unknown, or spaces.

    Byte pairs can spell any text; what was learned are the characters of longer tokens.

    >>> tokenizer = Tokenizer.train("characters", ["what a film"], vocabulary=100)
    >>> [nothing_known(tokenizer, ids) for ids in tokenizer.encode(["zoo", "a zoo", "z u"])]
    [True, False, True]
    >>> tokenizer = Tokenizer.train("bpe", ["what a film"] * 2, vocabulary=300)
    >>> [nothing_known(tokenizer, ids) for ids in tokenizer.encode(["雪", "a 雪", "q z"])]
    [True, False, True]
    """
    if tokenizer.kind == "bpe" and (learned := tokenizer.learned_characters):
        return learned.isdisjoint(tokenizer.decode(ids))
    return not tokenizer.telling[ids].any()


def nothing_known_in(tokenizer: Tokenizer, encoded: Jagged) -> list[bool]:
    """The same of many texts, at once where tokens themselves tell."""
    if tokenizer.kind == "bpe":
        return [nothing_known(tokenizer, ids) for ids in encoded.rows]
    told = np.bincount(encoded.row_of, tokenizer.telling[encoded.values], len(encoded.lengths))
    return [not count for count in told.tolist()]


def hidden_at_random(
    rows: Jagged, share: float, mask: int, noise: Float[np.ndarray, " values"]
) -> Jagged:
    """Rows with a share of their tokens replaced by the mask; the first of each stays.

    Args:
        noise: A number in [0, 1) for each token.
    """
    hidden = (noise < share) & (rows.places > 0)
    return Jagged(np.where(hidden, mask, rows.values), rows.lengths)


def attends(model: ModelConfig) -> bool:
    """Whether all stacks attend; recurrent and convolutional ones pad their rows inside."""
    stacks = (model.encoder, model.decoder)
    return all(stack is None or stack.kind == "attention" for stack in stacks)


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
    encoder, decoder = (
        None if stack is None else replace(stack, max_length=max(stack.max_length, longest))
        for stack in (model.encoder, model.decoder)
    )
    return replace(model, encoder=encoder, decoder=decoder)


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
