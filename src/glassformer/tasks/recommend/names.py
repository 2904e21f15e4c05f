"""Users and items by name."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path

from glassformer.data.splits import content_key
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json

FILE = "names.json"
UNKNOWN = -1  # the number of a name that training did not have


class Numbered:
    """Names with a number each, from 0 on."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def _spellings(self) -> dict[str, int]:
        """The same without case and white space, where that is no other name."""
        return {content_key(name): number for number, name in enumerate(self.names)}

    def find(self, name: str) -> int:
        """The number of a name as a person types it, or UNKNOWN."""
        number = self.numbers.get(name.strip(), UNKNOWN)
        return self._spellings.get(content_key(name), UNKNOWN) if number == UNKNOWN else number

    def near(self, name: str) -> str:
        """A question that names a similar one, if there is one."""
        found = get_close_matches(content_key(name), self._spellings, n=1)
        return f"; did you mean {self.names[self._spellings[found[0]]]!r}?" if found else ""


class Names:
    """The users and items of the training rows.

    Attributes:
        captions: What people call each item; empty if the rows do not say.

    Args:
        captions: By item.
    """

    def __init__(
        self,
        users: Iterable[str],
        items: Iterable[str],
        captions: Mapping[str, str] | None = None,
    ) -> None:
        self.users, self.items = Numbered([*users]), Numbered([*items])
        self.captions = [(captions or {}).get(name, "") for name in self.items.names]
        if not any(self.captions):
            self.captions = []

    @cached_property
    def shown(self) -> Sequence[str]:
        """What each item is called in answers: its caption, with its name if others share it."""
        if not self.captions:
            return self.items.names
        counts = Counter(self.captions)
        return [
            caption
            if counts[caption] == 1 and caption
            else f"{caption} [{name}]"
            if caption
            else name
            for name, caption in zip(self.items.names, self.captions, strict=True)
        ]

    @cached_property
    def _called(self) -> Numbered:
        return Numbered(self.shown)

    def find_item(self, given: str) -> int:
        """The number of an item by its name or its caption, or UNKNOWN."""
        number = self.items.find(given)
        return self._called.find(given) if number == UNKNOWN and self.captions else number

    def near_item(self, given: str) -> str:
        """A question that names a similar item, if there is one."""
        return self._called.near(given) or self.items.near(given)

    def save(self, folder: Path) -> None:
        """Write them into the folder of a run."""
        values = {"users": self.users.names, "items": self.items.names}
        more = {"captions": self.captions} if self.captions else {}
        write_json(values | more, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> "Names":
        """What `save` wrote."""
        found = read_json(folder / FILE)
        try:
            captions = found.get("captions") or [""] * len(found["items"])
            called = dict(zip(found["items"], captions, strict=True))
            return cls(found["users"], found["items"], called)
        except (KeyError, TypeError, ValueError):
            raise GlassformerError(
                f"{folder / FILE}: does not list users and items; copy the run again"
            ) from None
