"""Where samples come from, which split they belong to, and how they become batches."""

from dataclasses import dataclass, field
from typing import ClassVar

from glassformer.config.checks import choose, positive, require, share

TOKENIZER_NAMES = ("auto", "bytes", "characters", "words", "bpe", "unigram")
FORM_NAMES = ("auto", "packed", "padded")


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerConfig:
    """How text is tokenised.

    Args:
        kind: `bytes`, `characters`, `words`, `bpe` or `unigram`; `auto` chooses by the training
            texts and stores its choice.
        vocabulary: Most tokens to learn, special ones included.
        lowercase: Whether texts are lowercased first; none lowercases words only.
        simplified: Whether traditional Chinese is read as simplified.
        dropout: Share of the BPE merges that is dropped in training.
    """

    HOME: ClassVar[str] = "data.tokenizer."

    kind: str = "auto"
    vocabulary: int = 20000
    lowercase: bool | None = None
    simplified: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        choose("data.tokenizer.kind", self.kind, TOKENIZER_NAMES)
        positive("data.tokenizer.vocabulary", self.vocabulary)
        share("data.tokenizer.dropout", self.dropout)
        require(
            not self.dropout or self.kind == "bpe",
            f"data.tokenizer.dropout drops BPE merges, but the kind is {self.kind}; "
            f"set data.tokenizer.kind=bpe",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DataConfig:
    """Files, columns, splits and batches.

    Args:
        files: Training data: paths or names of the catalog; splits not given are held out of them.
        valid: Validation data.
        test: Test data.
        unlabelled: Data without labels, which pretraining reads as well.
        columns: Columns by role, where they should not be guessed.
        header: Whether the first row of a text table names its columns; none decides by its cells.
        group: Rows with the same value in this column stay in one split.
        encoding: Encoding of text without a byte order mark; none for UTF-8.
        valid_share: Share held out for validation if no validation data are given.
        test_share: Share held out for the test if no test data are given.
        stratify: Whether each split gets its share of every label where nothing groups the rows,
            or, where rows have a time, the last ones of every user; false goes by the hash of a row
            alone, so that more rows do not move the others.
        together: Whether rows that share an answer which could be learned by heart, such as a
            transcript, stay in one split, unless there are few different ones.
        token_dropout: Share of the tokens hidden at random during training.
        batch_tokens: Tokens in one batch, padding included.
        by_length: Whether rows of similar length share a batch, which saves padding; false mixes
            all lengths, for rows whose length says much about their answer.
        form: `packed` or `padded` batches; `auto` packs where that pays.
        workers: Threads that prepare batches in advance.
    """

    files: tuple[str, ...] = ()
    valid: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    unlabelled: tuple[str, ...] = ()
    columns: dict[str, str] = field(default_factory=dict)
    header: bool | None = None
    group: str | None = None
    encoding: str | None = None
    valid_share: float = 0.1
    test_share: float = 0.1
    stratify: bool = True
    together: bool = True
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    token_dropout: float = 0.0
    batch_tokens: int = 8192
    by_length: bool = True
    form: str = "auto"
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("valid_share", "test_share", "token_dropout"):
            share(f"data.{name}", getattr(self, name))
        require(
            self.valid_share + self.test_share < 1,
            f"data.valid_share and data.test_share leave nothing to train on: "
            f"{self.valid_share} + {self.test_share}; lower them",
        )
        positive("data.batch_tokens", self.batch_tokens)
        positive("data.workers", self.workers)
        choose("data.form", self.form, FORM_NAMES)
