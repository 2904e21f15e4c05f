"""TMX, the exchange format of translation memories: a unit is a row, a language is a column.

Of two languages the header's source comes first; of more, two are chosen with --columns
source=de,target=en. Markup inside a segment is dropped. The file is read in chunks. It may name a
document type, which is never fetched, but not define entities, which could exhaust memory.
"""

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from glassformer.data.rows import LONGEST_FIELD, Row, row_of
from glassformer.data.sources.files import BUFFER, opened
from glassformer.errors import GlassformerError

CODES = {"bpt", "ept", "it", "ph", "ut"}  # they hold markup of another format
ANY = "*all*"  # in a header: no language is the source


def read_tmx(path: Path, encoding: str | None) -> Iterator[Row]:
    """The units of a file, each a text by language."""
    number = 0
    units = _Units(path, encoding)
    with opened(path) as stream:
        while chunk := stream.read(BUFFER):
            units.feed(chunk)
            for unit in units.take():
                number += 1
                yield row_of(unit, str(path), number)
    units.feed(b"", last=True)


class _Units:
    """Collects units as the parser goes through a file."""

    def __init__(self, path: Path, encoding: str | None) -> None:
        self.path = path
        self.parser = expat.ParserCreate(encoding)
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.EntityDeclHandler = self._entity
        self.parser.DefaultHandler = self._other
        self.root = ""  # the outermost element
        self.first = ""  # the language of the source
        self.language: str | None = None
        self.codes = 0  # how deep in markup of another format
        self.segment: list[str] | None = None
        self.size = 0  # characters in the segment
        self.unit: dict[str, str] = {}
        self.units: list[dict[str, str]] = []

    def feed(self, chunk: bytes, *, last: bool = False) -> None:
        """Parse a chunk; the last one must close every element."""
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            raise self._broken(expat.ErrorString(error.code)) from None
        except (LookupError, ValueError) as error:  # an encoding that the parser cannot do
            raise self._broken(str(error)) from None

    def take(self) -> list[dict[str, str]]:
        """The units that ended since the last call."""
        found, self.units = self.units, []
        return found

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.root:
            self.root = name
            if name != "tmx":
                raise self._broken(f"the outermost element is <{name}>")
        if name == "header":
            source = attributes.get("srclang", ANY).lower()
            self.first = "" if source == ANY else source
        elif name == "tu":
            self.unit = {}
        elif name == "tuv":
            self.language = (attributes.get("xml:lang") or attributes.get("lang") or "").lower()
            if not self.language:
                raise self._broken("a <tuv> has no language")
        elif name == "seg":
            self.segment, self.size = [], 0
        elif name in CODES:
            self.codes += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self.segment is not None and self.language is not None:
            text = " ".join("".join(self.segment).split())
            self.unit[self.language] = self.unit.get(self.language) or text
            self.segment = None
        elif name == "tu":
            self.units.append(dict(sorted(self.unit.items(), key=self._after_the_source)))
        elif name in CODES:
            self.codes -= 1

    def _after_the_source(self, entry: tuple[str, str]) -> bool:
        """Whether this is not the source, which a header may call `en` for `en-us`."""
        language = entry[0]
        return not (f"{language}-".startswith(f"{self.first}-") if self.first else False)

    def _text(self, text: str) -> None:
        if self.segment is None or self.codes:
            return
        self.size += len(text)
        if self.size > LONGEST_FIELD:
            raise self._broken(f"a segment of more than {LONGEST_FIELD:,} characters")
        self.segment.append(text)

    def _entity(self, name: str, *_: object) -> None:
        raise GlassformerError(
            f"{self._where}: defines the entity {name!r}, which is not expanded for safety; write "
            f"the text itself"
        )

    def _other(self, text: str) -> None:
        if text.startswith("&") and self.segment is not None:
            raise GlassformerError(
                f"{self._where}: {text} is not defined; write the character itself"
            )

    @property
    def _where(self) -> str:
        return f"{self.path} line {self.parser.CurrentLineNumber}"

    def _broken(self, reason: str) -> GlassformerError:
        return GlassformerError(
            f"{self._where}: not valid TMX ({reason}); export or fetch the file again"
        )
