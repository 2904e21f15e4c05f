"""How results show themselves in a notebook: small tables of text that is shown, never obeyed."""

import html
from collections.abc import Iterable, Sequence

# XML allows no control characters but tab and line ends.
CONTROL = dict.fromkeys({*range(32), 127} - {9, 10, 13}, "\N{REPLACEMENT CHARACTER}")


def escaped(text: object) -> str:
    """Escape text for use between tags and inside quotes.

    >>> escaped('<b> & "c"')
    '&lt;b&gt; &amp; &quot;c&quot;'
    """
    valid = str(text).encode("utf-8", "replace").decode("utf-8")  # without lone surrogates
    return html.escape(valid.translate(CONTROL))


def table(title: str, rows: Iterable[Sequence[object]], header: Sequence[object] = ()) -> str:
    """A title above a table.

    >>> table("scores", [("bleu", 31.2)])
    '<b>scores</b><table><tr><td>bleu</td><td>31.2</td></tr></table>'
    """
    head = "".join(f"<th>{escaped(name)}</th>" for name in header)
    lines = [f"<tr>{head}</tr>"] if header else []
    lines += [f"<tr>{''.join(f'<td>{escaped(one)}</td>' for one in row)}</tr>" for row in rows]
    return f"<b>{escaped(title)}</b><table>{''.join(lines)}</table>"


def heat(strength: float) -> str:
    """The style of a cell that is as dark as it is strong, from 0 to 1."""
    return f"background: rgba(0, 114, 178, {strength:.2f}); min-width: 2em"


def abstention(reason: str, guess: str, note: str = "") -> str:
    """No answer and why; what the model would guess, as HTML, opens on request.

    >>> abstention("no word was seen", "<b>good</b>")
    '<b>No answer:</b> no word was seen.<details><summary>The guess</summary><b>good</b></details>'
    """
    title = f"<b>No answer:</b> {escaped(reason)}.{paragraphs([note])}"
    return f"{title}<details><summary>The guess</summary>{guess}</details>"


def paragraphs(sentences: Iterable[str]) -> str:
    """Sentences below each other; empty ones are left out."""
    return "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences if sentence)
