"""Users and items by name."""

from collections.abc import Iterable, Sequence
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
    """The users and items of the training rows."""

    def __init__(self, users: Iterable[str], items: Iterable[str]) -> None:
        self.users, self.items = Numbered([*users]), Numbered([*items])

    def save(self, folder: Path) -> None:
        """Write them into the folder of a run."""
        values = {"users": self.users.names, "items": self.items.names}
        write_json(values, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> "Names":
        """What `save` wrote."""
        found = read_json(folder / FILE)
        try:
            return cls(found["users"], found["items"])
        except (KeyError, TypeError):
            raise GlassformerError(
                f"{folder / FILE}: does not list users and items; copy the run again"
            ) from None
