"""How a sequence is generated: greedily, by sampling, or by beam search."""

from dataclasses import dataclass, field

from glassformer.config.checks import above_zero, at_most, choose, not_negative, positive, require

METHOD_NAMES = ("greedy", "sample", "beam")
PENALTY_NAMES = ("none", "average", "gnmt")
STOPPING_NAMES = ("exact", "soon")
MOST_ANSWERS = 1000  # beams per row, and answers for each; more would exhaust memory
MOST_TOKENS = 1_000_000  # of an answer; room for all of them is made before the first
COLDEST = 1e-3  # below, scores divided by the temperature overflow
STRONGEST = 5.0  # beyond, so do sums divided by a power of the length
MOST_COST = 1000  # of a token to be avoided; enough to rule it out


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleConfig:
    """Filters for sampling, in the order in which they are applied.

    Args:
        temperature: Above 1, samples are more random; below 1, less.
        top_k: Sample from the k likeliest tokens only; 0 for all.
        top_p: Sample from the likeliest tokens only, as many as are needed to reach this
            probability together. Holtzman et al., 2019.
        min_p: Sample only from tokens whose probability is at least this share of the likeliest.
            Nguyen et al., 2024.
        typical: Sample from the tokens of most typical information content only, as many as are
            needed to reach this probability together. Meister et al., 2022.
        seed: Seed of the first row; row r uses seed + r, unless it has a seed of its own. In a
            language model, the seed of a prompt depends on this seed and on the prompt.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(
            self.temperature >= COLDEST,
            f"decode.sample.temperature must be at least {COLDEST}, got {self.temperature}; "
            f"to always take the likeliest token, use decode.method=greedy",
        )
        not_negative("decode.sample.top_k", self.top_k)
        for name in ("top_p", "typical"):
            value = getattr(self, name)
            require(0 < value <= 1, f"decode.sample.{name} must lie in (0, 1], got {value}")
        require(0 <= self.min_p <= 1, f"decode.sample.min_p must lie in [0, 1], got {self.min_p}")


@dataclass(frozen=True, kw_only=True, slots=True)
class BeamConfig:
    """Beam search: its width, and how scores are compared.

    Args:
        width: Number of beams per row.
        penalty: Length penalty, by which a sum of log-probabilities is divided: 1 (`none`),
            length^strength (`average`), or ((5 + length) / 6)^strength (`gnmt`, Wu et al., 2016).
        strength: Strength of the length penalty: above 0 favours long outputs, below 0 short ones.
        stopping: When the search stops: `exact` continues while a beam could still end among the
            best; `soon` scores each beam as if it ended now.
        groups: Number of groups in diverse beam search. Vijayakumar et al., 2016.
        diversity: Penalty on a token for each beam of an earlier group that chose it in the same
            step.
    """

    width: int = 4
    penalty: str = "average"
    strength: float = 1.0
    stopping: str = "exact"
    groups: int = 1
    diversity: float = 0.5

    def __post_init__(self) -> None:
        positive("decode.beam.width", self.width)
        at_most("decode.beam.width", self.width, MOST_ANSWERS)
        positive("decode.beam.groups", self.groups)
        choose("decode.beam.penalty", self.penalty, PENALTY_NAMES)
        choose("decode.beam.stopping", self.stopping, STOPPING_NAMES)
        require(
            self.width % self.groups == 0,
            f"decode.beam.width {self.width} cannot be split into {self.groups} equal groups; "
            f"choose a width that is a multiple of decode.beam.groups",
        )
        not_negative("decode.beam.diversity", self.diversity)
        at_most("decode.beam.diversity", self.diversity, MOST_COST)
        require(
            abs(self.strength) <= STRONGEST,
            f"decode.beam.strength must lie in [-{STRONGEST:g}, {STRONGEST:g}], "
            f"got {self.strength}; 1 is usual",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodeConfig:
    """How sequences are generated.

    Args:
        method: Decoding method: `greedy`, `sample` or `beam`.
        best: Number of outputs per row: the best beams, or samples.
        max_length: Largest number of tokens to generate, the end included.
        min_length: Number of tokens to generate before the end is allowed.
        repetition: Above 1, tokens that already occurred become less likely: their positive scores
            are divided by this value, their negative ones multiplied; beam search multiplies their
            log-probabilities. Keskar et al., 2019.
        no_repeat: Length of the n-grams, in tokens, that may not occur twice; 0 for no limit.
        alternatives: Number of likeliest alternatives to report for each token.
        stop: Texts that end generation; if words are required, only after the last of them.
    """

    method: str = "greedy"
    best: int = 1
    max_length: int = 256
    min_length: int = 0
    repetition: float = 1.0
    no_repeat: int = 0
    alternatives: int = 0
    stop: tuple[str, ...] = ()
    sample: SampleConfig = field(default_factory=SampleConfig)
    beam: BeamConfig = field(default_factory=BeamConfig)

    def __post_init__(self) -> None:
        choose("decode.method", self.method, METHOD_NAMES)
        positive("decode.best", self.best)
        positive("decode.max_length", self.max_length)
        not_negative("decode.no_repeat", self.no_repeat)
        not_negative("decode.alternatives", self.alternatives)
        at_most("decode.best", self.best, MOST_ANSWERS)
        at_most("decode.max_length", self.max_length, MOST_TOKENS)
        at_most("decode.alternatives", self.alternatives, MOST_ANSWERS)
        require(
            0 <= self.min_length <= self.max_length,
            f"decode.min_length must lie in 0 ... max_length ({self.max_length}), "
            f"got {self.min_length}",
        )
        above_zero("decode.repetition", self.repetition)
        at_most("decode.repetition", self.repetition, MOST_COST)
        require(
            all(self.stop),
            "decode.stop holds an empty text, which would end generation at once; drop it",
        )
        require(
            self.method != "greedy" or self.best == 1,
            f"decode.best = {self.best}, but greedy gives one answer; "
            f"set decode.method to beam or sample",
        )
        require(
            self.method != "beam" or self.best <= self.beam.width,
            f"decode.best = {self.best} is more than decode.beam.width = {self.beam.width}; "
            f"raise decode.beam.width",
        )
