"""Settings of `transcribe`, and its defaults."""

from dataclasses import dataclass, field

from glassformer.config import choose, require, share, stack_of_size
from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import Values, plain
from glassformer.tasks.shared.sound_settings import SoundConfig

SEARCH_NAMES = ("auto", "ctc", "attention", "joint")
MEASURE_NAMES = ("auto", "words", "characters")
LONGEST_CHUNK = 60.0  # seconds
MOST_LM = 10.0  # of the weight of a language model


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamConfig:
    """How an encoder is trained for `predict --stream`, which processes one chunk after another.

    Args:
        chunk: Length of a chunk in seconds; 0 for whole recordings, without streaming.
        left: Seconds before a chunk that attention sees, rounded up to whole chunks.
        varied: Whether the length of chunks varies from batch to batch, with half of the batches
            using whole recordings; files are then transcribed with full context. Zhang et al.,
            2020.
    """

    chunk: float = 0.0
    left: float = 2.5
    varied: bool = False

    def __post_init__(self) -> None:
        for name in ("chunk", "left"):
            value = getattr(self, name)
            require(
                0 <= value <= LONGEST_CHUNK,
                f"task.stream.{name} must lie in 0 ... {LONGEST_CHUNK:g} seconds, got {value:g}",
            )
        require(
            not self.varied or self.chunk > 0,
            "task.stream.varied needs the usual size of a chunk; set task.stream.chunk=0.64",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscribeConfig(SoundConfig):
    """Settings of the job, besides those of its sounds.

    Args:
        max_piece: Recordings longer than this many seconds are cut at pauses before transcription;
            0 for a quarter more than the longest recording in training.
        lowercase: Whether transcripts are lowercased.
        punctuation: Whether transcripts keep their punctuation.
        ctc_weight: Weight of CTC in the loss and in a joint search; attention has the rest. 1 is
            CTC alone, without a decoder; 0 is attention alone.
        intermediate: Share of the CTC loss that is computed after half of the blocks of the
            encoder.
        label_smoothing: Share of the target that is spread evenly over all tokens, in the attention
            loss.
        search: Which scores decide on a transcript: `auto`, `ctc`, `attention` or `joint`; `auto`
            uses all that are trained.
        measure: Unit of the error rate that chooses the best model: `words` or `characters`; `auto`
            uses characters if the script of the transcripts has no spaces.
        stream: How the encoder is trained to read streams.
        decode: Decoding settings: greedy or beam.
        lm: Weight of an n-gram model of the training transcripts in beam search, 0 for no such
            model; none chooses it on the validation rows, together with the share of CTC in a joint
            search.
    """

    max_piece: float = 0.0
    lowercase: bool = True
    punctuation: bool = False
    ctc_weight: float = 0.3
    intermediate: float = 0.0
    label_smoothing: float = 0.1
    search: str = "auto"
    measure: str = "auto"
    stream: StreamConfig = field(default_factory=StreamConfig)
    decode: DecodeConfig = field(default_factory=lambda: DecodeConfig(method="beam"))
    lm: float | None = None

    def __post_init__(self) -> None:
        self.check_sound()
        require(
            self.max_piece == 0 or self.max_piece >= 1,
            f"task.max_piece must be 1 or more, or 0, got {self.max_piece:g}",
        )
        share("task.label_smoothing", self.label_smoothing)
        share("task.intermediate", self.intermediate)
        require(
            not self.intermediate or self.ctc_weight > 0,
            "task.intermediate is a share of CTC's loss, which task.ctc_weight = 0 leaves out; "
            "raise that one, or leave it out",
        )
        require(
            0 <= self.ctc_weight <= 1,
            f"task.ctc_weight must lie in [0, 1], got {self.ctc_weight}; 0.3 is usual",
        )
        choose("task.search", self.search, SEARCH_NAMES)
        choose("task.measure", self.measure, MEASURE_NAMES)
        require(
            self.decode.method != "sample",
            "task.decode.method = sample would write something else each time; use greedy or beam",
        )
        require(
            self.lm is None or 0 <= self.lm <= MOST_LM,
            f"task.lm must lie in [0, {MOST_LM:g}], got {self.lm}; 0.3 is usual",
        )
        require(
            not self.lm or self.decode.method == "beam",
            "task.lm needs task.decode.method = beam; leave it out, or search by beam",
        )
        trained = self.searches
        require(
            self.search in ("auto", *trained),
            f"task.search = {self.search} needs scores that task.ctc_weight = {self.ctc_weight:g} "
            f"does not train; choose {' or '.join(trained)}",
        )

    @property
    def searches(self) -> tuple[str, ...]:
        """The searches that the trained scores allow, the default first."""
        if self.ctc_weight == 1:
            return ("ctc",)
        return ("attention",) if self.ctc_weight == 0 else ("joint", "attention", "ctc")


def transcribe_defaults(accelerated: bool) -> Values:
    """Defaults of the job, on top of the general ones."""
    size = "small" if accelerated else "tiny"
    encoder = plain(stack_of_size(size, block="conformer", dropout=0.1))
    decoder = plain(stack_of_size(size, dropout=0.1))
    return {
        "model": {"frontend": {"kind": "subsampling"}, "encoder": encoder, "decoder": decoder},
        "data": {
            "batch_tokens": 16384 if accelerated else 2048,
            "workers": 4 if accelerated else 1,  # a GPU would wait for one that augments sounds
            "tokenizer": {"vocabulary": 1000},
        },
        "task": {"decode": {"method": "beam"}},
        "train": {"average": 5 if accelerated else 1},
    }
