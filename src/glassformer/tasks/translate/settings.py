"""Settings of `translate`, and its defaults."""

from dataclasses import dataclass, field

from glassformer.config import TokenizerConfig, choose, require, share, stack_of_size
from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import Values, build, plain
from glassformer.tasks.translate.answers import GOAL_NAMES, MEASURES

MEASURE_NAMES = ("auto", *MEASURES)
NO_LIMIT = 100_000  # tokens: the limit is `task.max_length`, unless decode.max_length is lower
# Until a model is well trained, exact stopping prefers overlong answers; docs/dev/log.md has more.
BY_BEAM: Values = {"method": "beam", "max_length": NO_LIMIT, "beam": {"stopping": "soon"}}


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslateConfig:
    """Settings of the job.

    Args:
        max_length: Largest number of tokens per side, without the end; longer texts are truncated.
        label_smoothing: Share of the target that is spread evenly over all tokens.
        joint: Whether both sides share one vocabulary; none decides by their characters.
        target: Tokenizer settings of the target; by default those of the source, except that
            symbols such as phonemes are kept whole.
        measure: What targets are: `text` for sentences, `symbols` or `letters` for words spelt in
            them; `auto` decides by the targets.
        goal: Score that chooses the best model: `bleu`, `cer` or `exact`; `auto` uses bleu for
            sentences (cer or exact where a library is missing) and exact for words.
        decode: Decoding settings, for predictions and for the scores of the trained model.
        monolingual: Files of target-language texts, one per line, for additional training pairs.
        backward: Run that translates the `monolingual` texts back into the source language.
            Sennrich et al., 2015.
    """

    max_length: int = 256
    label_smoothing: float = 0.1
    joint: bool | None = None
    target: TokenizerConfig | None = None
    measure: str = "auto"
    goal: str = "auto"
    decode: DecodeConfig = field(default_factory=lambda: build(DecodeConfig, BY_BEAM))
    monolingual: tuple[str, ...] = ()
    backward: str | None = None

    def __post_init__(self) -> None:
        require(self.max_length > 1, "task.max_length must be at least 2: a token and an end")
        share("task.label_smoothing", self.label_smoothing)
        choose("task.measure", self.measure, MEASURE_NAMES)
        choose("task.goal", self.goal, GOAL_NAMES)
        require(
            not self.monolingual or self.backward is not None,
            "task.monolingual has no sources; name the run that generates them with "
            "--set task.backward=RUN, trained from the target language to the source language",
        )
        require(
            self.backward is None or bool(self.monolingual),
            f"task.backward={self.backward} has nothing to translate; name a file of texts in the "
            f"target language with --set task.monolingual=FILE",
        )


def translate_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    stack = plain(stack_of_size("base" if accelerated else "tiny", max_length=512, dropout=0.1))
    return {
        "model": {"encoder": stack, "decoder": stack, "share": True},
        "data": {
            "batch_tokens": 16384 if accelerated else 4096,
            "valid_share": 0.05,
            "test_share": 0.05,
            "tokenizer": {"vocabulary": 8000},
        },
        "task": {"decode": BY_BEAM},
        "train": {
            "optimiser": {"schedule": "inverse-root"},
            "average": 5 if accelerated else 1,  # in a short training, the last is the best
        },
    }
