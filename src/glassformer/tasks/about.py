"""What is known about a job before it is loaded: its name, a summary, its options.

Nothing here imports torch, so that `--help` is fast.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of `glassformer predict` that a job declares.

    Jobs that declare the same name share the option as the first of them defines it.

    Attributes:
        name: The keyword in Python.
        flag: The flag on the command line, such as `--with`; by default the name.
        kind: bool for a switch, otherwise the type of its value.
        several: Whether it may be repeated.
        least: The minimum, for numbers.
        single: Whether it needs exactly one input.
        run: Whether its value is the folder of another run, which the predictor gets opened, as a
            `Companion`.
        remote: Whether a client of `glassformer serve` may set it, if it is no path.
    """

    name: str
    help: str
    kind: type = str
    flag: str = ""
    metavar: str | None = None
    several: bool = False
    least: int | None = None
    single: bool = False
    run: bool = False
    remote: bool = True

    @property
    def typed(self) -> str:
        """The flag as it is typed."""
        return self.flag or f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class About:
    """A job before it is loaded.

    Attributes:
        summary: What it does, in one sentence.
        job: Where its `Job` is, as `package.module:NAME`.
        options: The options of its predictor, shown in `predict --help` under its name.
        wishes: Other words for the job, and words for what it can do something about, each with
            advice; a word that means the job has none.
        embeds: Whether its runs may turn texts into vectors.
    """

    name: str
    summary: str
    job: str
    options: Sequence[Option] = ()
    wishes: Mapping[str, str] = field(default_factory=dict)
    embeds: bool = False


def wish(words: str, advice: str = "") -> dict[str, str]:
    """Map each of several words to one piece of advice.

    >>> wish("asr, stt")
    {'asr': '', 'stt': ''}
    """
    return dict.fromkeys(words.split(", "), advice)
