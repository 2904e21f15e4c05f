"""Numbers and tokens of explanations, in words."""

from unicodedata import bidirectional, east_asian_width

from glassformer.explaining.parts import Target
from glassformer.terminal import printable


def percent(share: float) -> str:
    """A probability.

    >>> percent(0.934), percent(0.07), percent(0.0002)
    ('93 %', '7.0 %', '< 0.1 %')
    """
    value = 100 * share
    if 0 < value < 0.1:
        return "< 0.1 %"
    return f"{value:.{1 if value < 9.95 else 0}f} %"


def signed(value: float) -> str:
    """An influence with its sign.

    >>> signed(0.412), signed(-0.0321), signed(-0.00002)
    ('+0.41', '−0.032', '−2e-05')
    """
    size = abs(value)
    digits = f"{size:.{2 if size >= 0.1 else 3}f}" if size >= 0.001 or not size else f"{size:.0e}"
    return ("−" if value < 0 else "+") + digits


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


def alternatives_of(target: Target, most: int) -> str:
    """What else was likely in the place of a target, with probabilities."""
    others = [one for one in target.alternatives if one[0].strip() != target.text.strip()]
    return ", ".join(f"{visible(text)} {percent(p)}" for text, p in others[:most])


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


def method_name(method: str) -> str:
    """The name of a method for people.

    >>> method_name("gradient_x_input")
    'gradient x input'
    """
    return method.replace("_", " ")
