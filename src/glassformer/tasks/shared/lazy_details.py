"""Details of a prediction that are worked out when somebody looks at them."""

from abc import abstractmethod
from collections.abc import ItemsView, Iterable, Iterator, Sequence, ValuesView
from typing import Any, ClassVar

UNKNOWN = object()


class LazyDetails(dict[str, Any]):
    """A dict whose values are found one by one, at the first look; `json` takes it like any other.

    Args:
        names: The keys.
    """

    __slots__ = ()
    costly: ClassVar[Sequence[str]] = ()  # keys whose values take long to find

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(dict.fromkeys(names, UNKNOWN))

    @abstractmethod
    def find(self, name: str) -> Any:
        """The value of a key."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if value is UNKNOWN:
            self[name] = value = self.find(name)
        return value

    def __iter__(self) -> Iterator[str]:  # so that dict(details) asks for each value
        return super().__iter__()

    def get(self, name: str, default: Any = None, /) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 (that is `get`)

    def items(self) -> Any:
        return ItemsView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def pop(self, name: str, /, *default: Any) -> Any:
        self.get(name)
        return super().pop(name, *default)

    def __eq__(self, other: object) -> bool:
        return dict(self) == other

    def __or__(self, other: Any, /) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any, /) -> Any:
        return other | dict(self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
