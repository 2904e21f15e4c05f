"""From bytes to text: line by line, or a file as one document.

UTF-8 by default; a byte order mark overrides any setting. A file that does not decode is read once
more, slowly, to name the line and the byte and to guess the encoding. The doctor reads a file that
mixes encodings LINE_BY_LINE: what is not UTF-8 is decoded as the encoding it looks like.
"""

import codecs
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from glassformer.data.rows import LONGEST_FIELD
from glassformer.data.sources.files import BUFFER, opened, reason
from glassformer.errors import GlassformerError

LONGEST_LINE = 16 * LONGEST_FIELD  # characters
LONGEST_DOCUMENT = 500 * LONGEST_FIELD
LINE_BY_LINE = "utf-8, line by line"  # in place of the name of an encoding

# Longer marks first: UTF-32's starts like UTF-16's.
MARKS: dict[bytes, str] = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# Codecs of text that no file is written in; some of them can decode to half a surrogate pair.
NOT_FOR_FILES = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "utf-7"}


def lines(
    path: Path, encoding: str | None = None, *, newline: str | None = "", job: str = ""
) -> Iterator[str]:
    r"""The lines of a file with their line ends, one at a time in memory.

    Args:
        newline: What ends a line: "\n", or "" for any of \n, \r and \r\n, all of which None
            turns into \n. In a file without a single \n it is \r in all cases.
        job: The job that reads it, where the doctor would guess another.
    """
    number = 0
    if newline == "\n" and _ends_in_returns(path):
        newline = "\r"
    with opened(path) as stream:
        codec = codec_of(path, stream.peek(), encoding)
        try:
            with _text_of(stream, codec, newline) as text:
                while line := text.readline(LONGEST_LINE + 1):
                    number += 1
                    if "\0" in line:
                        raise _binary(path, number)
                    if len(line) > LONGEST_LINE:
                        raise GlassformerError(
                            f"{path} line {number}: longer than {LONGEST_LINE:,} characters; split "
                            f"it into several lines"
                        )
                    yield line
        except UnicodeError as error:
            raise undecodable(path, codec, error, job) from None
    if not number:
        raise GlassformerError(f"{path}: the file is empty; give a file with at least one row")


def _text_of(stream: io.BufferedReader, codec: str, newline: str | None) -> io.TextIOWrapper:
    """The text of a stream."""
    if codec == LINE_BY_LINE:
        stream, codec = io.BufferedReader(_Utf8Lines(stream)), "utf-8-sig"
    return io.TextIOWrapper(stream, encoding=codec, newline=newline)


class _Utf8Lines(io.RawIOBase):
    """The lines of a stream, all of them in UTF-8."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self.stream, self.rest = stream, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self.rest:
            self.rest = decoded_line(self.stream.readline()).encode()
        given, self.rest = self.rest[: len(buffer)], self.rest[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)


def decoded_line(line: bytes) -> str:
    """A line in UTF-8, or else in the encoding that it looks like.

    >>> decoded_line("über £50".encode("cp1252")), decoded_line("über £50".encode())
    ('über £50', 'über £50')
    """
    for codec in ("utf-8", guess_encoding(line) or "latin-1"):
        try:
            return line.decode(codec)
        except UnicodeDecodeError:
            continue
    return line.decode("latin-1")


def lines_not_utf8(path: Path) -> tuple[list[int], bytes, bool]:
    """Numbers of the lines that are not UTF-8, some of those, and whether others are not ASCII."""
    numbers, some, mixed = list[int](), b"", False
    with opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.isascii():
                continue
            try:
                line.decode("utf-8")
                mixed = True
            except UnicodeDecodeError:
                numbers.append(number)
                some += line if len(some) < BUFFER else b""
    return numbers, some, mixed


def _ends_in_returns(path: Path) -> bool:
    r"""Whether lines end as on old Macs: the file has \r, and nowhere \n, to its end."""
    with opened(path) as stream:
        chunk = stream.read(BUFFER)
        if b"\r" not in chunk:
            return False
        while chunk and b"\n" not in chunk:
            chunk = stream.read(BUFFER)
    return not chunk


def document(path: Path, encoding: str | None = None) -> str:
    """A file as one text; an empty file is an empty text."""
    with opened(path) as stream:
        codec = codec_of(path, stream.peek(), encoding)
        try:
            with _text_of(stream, codec, None) as decoded:
                text = decoded.read(LONGEST_DOCUMENT + 1)
        except UnicodeError as error:
            raise undecodable(path, codec, error) from None
    if "\0" in text:
        raise _binary(path, 1 + text.count("\n", 0, text.index("\0")))
    if len(text) > LONGEST_DOCUMENT:
        raise GlassformerError(
            f"{path}: longer than {LONGEST_DOCUMENT:,} characters, too long for one document; "
            f"split it into several files"
        )
    return text


def check_codec(encoding: str) -> None:
    """Refuse a name that is not a text encoding."""
    if encoding == LINE_BY_LINE:
        return
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding).close()
        if codecs.lookup(encoding).name.replace("_", "-") in NOT_FOR_FILES:
            raise LookupError
    except (LookupError, ValueError):
        raise GlassformerError(
            f"data.encoding: {encoding!r} is not a text encoding known to Python; "
            f"use a name such as utf-8, utf-16, cp1252 or gb18030"
        ) from None


def codec_of(path: Path, head: bytes, encoding: str | None) -> str:
    """The codec of a file: by its byte order mark, as given, or UTF-8, which has no zero bytes."""
    if encoding == LINE_BY_LINE:
        return encoding
    for mark, codec in MARKS.items():
        if head.startswith(mark):
            return codec
    if encoding is not None:
        return encoding
    if b"\0" in head:
        zeros = [head[parity::2].count(0) / len(head) for parity in (0, 1)]
        if max(zeros) > 0.3 and min(zeros) < 0.05:
            likely = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
            raise GlassformerError(
                f"{path}: every other byte is zero, which looks like {likely} without a byte order "
                f"mark; {_instead(likely)}"
            )
        raise _binary(path, 1 + head.count(b"\n", 0, head.index(b"\0")))
    return "utf-8"


def undecodable(path: Path, codec: str, error: UnicodeError, job: str = "") -> GlassformerError:
    """The error for a file that does not decode: the first bad line and byte, and a guess."""
    try:
        bad = first_bad_byte(path, codec)
    except UnicodeError:  # a codec that does not report positions
        bad = None
    if bad is None:
        return GlassformerError(
            f"{path}: cannot be read as {codec} ({reason(error)}); try another data.encoding"
        )
    name = "UTF-8" if codec in ("utf-8", "utf-8-sig") else codec
    return GlassformerError(
        f"{path} line {bad.line}: not valid {name} (byte 0x{bad.rest[0]:02x} at position "
        f"{bad.position}); {_advice(path, name, bad, job)}"
    )


class BadByte(NamedTuple):
    """The first byte that does not decode.

    Attributes:
        rest: The bytes from there on.
        mixed: Whether text that is not ASCII came before.
    """

    line: int
    position: int
    rest: bytes
    mixed: bool


def first_bad_byte(path: Path, codec: str) -> BadByte | None:
    """Where a file does not decode; None if all of it does."""
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(codec)(), translate=True)
    line, position, mixed = 1, 0, False
    with opened(path) as stream:
        while chunk := stream.read(BUFFER):
            position += len(chunk)
            rest = b""
            try:
                text = decoder.decode(chunk)
            except UnicodeDecodeError as error:
                rest = error.object[error.start :]
                text = decoder.decode(chunk[: max(0, len(chunk) - len(rest))])
            line += text.count("\n")
            mixed = mixed or not text.isascii()
            if rest:
                return BadByte(line, position - len(rest), rest, mixed)
        try:
            decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            return BadByte(line, position - len(error.object), error.object, mixed)
    return None


def _advice(path: Path, name: str, bad: BadByte, job: str) -> str:
    """What to do about bytes that do not decode."""
    if name != "UTF-8":
        return "try another data.encoding, or remove it for UTF-8"
    guess = guess_encoding(bad.rest.partition(b"\n")[0] if bad.mixed else bad.rest)
    if guess is None:
        return "it looks like a binary file; give a text file or a table"
    if bad.mixed:
        named = f"{shlex.quote(str(path))} --job {job}" if job else shlex.quote(str(path))
        return (
            f"earlier lines are UTF-8 and this one looks like {guess}, so the file mixes "
            f"encodings; save all of it as UTF-8: `glassformer doctor {named} --fix OUT` writes "
            f"such a copy"
        )
    return f"it looks like {guess}: {_instead(guess)}"


def _instead(encoding: str) -> str:
    """What to do about another encoding; a run reads later files the same way."""
    return f"save it as UTF-8, or train with --set data.encoding={encoding}"


def guess_encoding(sample: bytes) -> str | None:
    """Guess a legacy encoding from the runs of bytes above 127; None for binary.

    Western text has single such bytes; Cyrillic words are runs of the last 32; Chinese has pairs
    that decode to common characters.

    >>> guess_encoding("déjà vu".encode("cp1252")), guess_encoding("文本分类".encode("gbk"))
    ('cp1252', 'gb18030')
    """
    if len(re.findall(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", sample)) > len(sample) / 20:
        return None
    runs = re.findall(rb"[\x80-\xff]+", sample)
    high = b"".join(runs)
    mean = len(high) / max(1, len(runs))
    if mean >= 3 and sum(byte >= 0xE0 for byte in high) > 0.7 * len(high):
        return "cp1251"
    characters = high.decode("gb18030", "ignore")
    common = sum("\u4e00" <= character <= "\u9fff" for character in characters)
    if mean >= 2 and common > 0.7 * len(high) / 2:
        return "gb18030"
    return "cp1252"


def _binary(path: Path, line: int) -> GlassformerError:
    return GlassformerError(
        f"{path} line {line}: a zero byte, so this is a binary file and not text; "
        f"give a text file or a table"
    )
