"""Numbers and tokens of explanations, in words.

Numbers are rounded once, halves up, by the same operations as in `page/data.js`: the terminal, the
picture and the page show the same.
"""

from math import floor
from typing import NamedTuple
from unicodedata import bidirectional, east_asian_width

from glassformer.explaining.parts import Target
from glassformer.terminal import printable

STRANGE = "not seen in training"  # a piece, or something in it
LOOKING = ("attention", "rollout")  # methods that tell what was looked at


class Reading(NamedTuple):
    """How influence is to be read.

    Attributes:
        title: With the name of a target in its place.
        legend: What the colours of a method without a sign say.
    """

    title: str
    legend: str = ""


def reading_of(method: str, *, signed: bool) -> Reading:
    """How the influence that a method found is to be read.

    >>> reading_of("rollout", signed=False).title
    'What it looked at for {answer}'
    """
    if signed:
        return Reading("What speaks for {answer}")
    if method in LOOKING:
        return Reading(
            "What it looked at for {answer}",
            "How much it was looked at, not whether that spoke for or against.",
        )
    return Reading(
        "What mattered for {answer}", "How much it mattered, not whether for or against."
    )


def influence_heading(method: str, *, signed: bool) -> str:
    """The heading of a column of influences.

    >>> influence_heading("occlusion", signed=True), influence_heading("rollout", signed=False)
    ('influence', 'looked at')
    """
    if signed:
        return "influence"
    return "looked at" if method in LOOKING else "what mattered"


def rounded(value: float, digits: int) -> str:
    """A number that is not negative with so many digits after the point, halves rounded up.

    >>> rounded(12.5, 0), rounded(0.05, 1)
    ('13', '0.1')
    """
    unit = 10**digits
    return f"{floor(value * unit + 0.5) / unit:.{digits}f}"


def percent(share: float) -> str:
    """A probability.

    >>> percent(0.934), percent(0.07), percent(0.0002), percent(0.99996)
    ('93 %', '7.0 %', '< 0.1 %', '> 99.9 %')
    """
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    if 99.9 < value < 100:
        return "> 99.9 %"
    return f"{rounded(value, 1 if value < 9.95 or 99 < value < 100 else 0)} %"


def amount(value: float) -> str:
    """The size of an influence.

    >>> amount(0.412), amount(0.0321), amount(0.00002), amount(0.0)
    ('0.41', '0.032', '2e-5', '0')
    """
    size = abs(value)
    if size >= 0.001:
        return rounded(size, 2 if size >= 0.1 else 3)
    return f"{size:.0e}".replace("e-0", "e-") if size else "0"


def signed(value: float) -> str:
    """An influence with its sign.

    >>> signed(0.412), signed(-0.0321), signed(-0.00002), signed(0.0)
    ('+0.41', '−0.032', '−2e-5', '0')
    """
    return ("−" if value < 0 else "+" if value else "") + amount(value)


def visible(token: str) -> str:
    r"""A token that can be seen: spaces and line ends have signs of their own.

    >>> visible(" the"), visible("\n"), visible(" "), visible("")
    ('the', '↵', '␣', '∅')
    """
    if not token:
        return "∅"
    if not token.strip():
        return "".join("↵" if c == "\n" else "␣" for c in token)
    return printable(token.strip())


def alternatives_of(target: Target, most: int) -> list[str]:
    """What else was likely in the place of a target, with probabilities."""
    others = [one for one in target.alternatives if visible(one[0]) != visible(target.text)]
    return [f"{visible(text)} {percent(p)}" for text, p in others[:most]]


def note_of(method: str, verdict: str) -> str:
    """A method, and how far it can be trusted.

    >>> note_of("gradient_x_input", "")
    'gradient x input: not measured'
    """
    return f"{method_name(method)}: {verdict or 'not measured'}"


def is_right_to_left(text: str) -> bool:
    """Whether some of its letters are of a script that runs from right to left.

    >>> is_right_to_left("Good صباح"), is_right_to_left("早上好")
    (True, False)
    """
    return any(bidirectional(c) in ("R", "AL") for c in text)


def runs_left(text: str, *, usual: bool = False) -> bool:
    """Whether the first letter of a text is of a script that runs from right to left.

    >>> runs_left("<s>"), runs_left("«مرحبا»"), runs_left("2026", usual=True)
    (False, True, True)
    """
    strong = (bidirectional(c) for c in text)
    return next((kind != "L" for kind in strong if kind in ("L", "R", "AL")), usual)


def is_east_asian(text: str) -> bool:
    """Whether it can be written downwards, character by character.

    >>> is_east_asian("早上"), is_east_asian("a上"), is_east_asian("")
    (True, False, False)
    """
    return bool(text) and all(east_asian_width(c) in "WF" for c in text)


def no_answer(reason: str) -> str:
    """Why there is no answer, where what follows explains the model's guess.

    >>> no_answer("no word of this text was seen in training")
    "No answer: no word of this text was seen in training. Below is the model's guess."
    """
    return f"No answer: {reason}. Below is the model's guess."


def method_name(method: str) -> str:
    """The name of a method for people.

    >>> method_name("gradient_x_input")
    'gradient x input'
    """
    return method.replace("_", " ")
