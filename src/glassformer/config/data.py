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
        kind: Kind of token: `bytes`, `characters`, `words`, `bpe` or `unigram`; `auto` chooses by
            the training texts and stores its choice.
        vocabulary: Largest number of tokens to learn, special ones included.
        lowercase: Whether texts are lowercased first; none does so for `words` only.
        simplified: Whether traditional Chinese characters are converted to simplified ones.
        dropout: Share of the BPE merges dropped in training.
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
        files: Training data: paths, or names in the catalog. Splits that are not given are held out
            of them.
        valid: Validation data.
        test: Test data.
        unlabelled: Data without labels, for pretraining and for `train.regularise`.
        columns: Columns by role, where they should not be detected.
        header: Whether the first row of a text table names its columns; none decides by its cells.
        group: Rows with the same value in this column stay in one split.
        encoding: Encoding of text without a byte order mark; none for UTF-8.
        valid_share: Share of the rows held out for validation if no validation data are given.
        test_share: Share of the rows held out for the test if no test data are given.
        stratify: Whether splits are stratified by label, if rows have no groups; for rows with
            users and times, whether the last rows of every user are held out. `false` splits by a
            hash of each row alone, so that adding rows never moves others to another split.
        together: Whether rows that share a transcript, or another answer that can be memorised,
            stay in one split; ignored if only a few different ones occur.
        token_dropout: Share of the tokens hidden at random in training.
        batch_tokens: Tokens in one batch, padding included.
        by_length: Whether batches consist of rows of similar length, which saves padding; `false`
            mixes all lengths, for data where the length of a row reveals much about its answer.
        form: Form of a batch: `packed` (rows end to end), `padded`, or `auto`, which packs where
            that pays.
        workers: Number of threads that prepare batches in advance.
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
