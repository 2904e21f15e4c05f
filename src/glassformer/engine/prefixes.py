"""Prefixes: which sequences of the pool begin alike, so that they share pages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Node:
    """A page of tokens after those of its parents, and the sequences that hold it."""

    holders: set[int] = field(default_factory=set)
    children: dict[tuple[int, ...], "Node"] = field(default_factory=dict)


class Prefixes:
    """A tree of the full pages of all sequences, by their tokens.

    Args:
        page: Tokens in a page; what begins alike shares whole pages.
    """

    def __init__(self, page: int) -> None:
        self.page, self.root = page, Node()
        self.tokens: dict[int, Sequence[int]] = {}  # of each sequence

    def add(self, sequence: int, tokens: Sequence[int]) -> None:
        """A sequence holds these tokens, or more than before; part of a page does not count."""
        self.tokens[sequence] = tokens
        node = self.root
        for page in self._pages(tokens):
            node = node.children.setdefault(page, Node())
            node.holders.add(sequence)

    def longest(self, tokens: Sequence[int]) -> tuple[int | None, int]:
        """A sequence that begins with as many of these tokens as any, and how many."""
        node, holder, length = self.root, None, 0
        for page in self._pages(tokens):
            found = node.children.get(page)
            if found is None:
                break
            node, holder, length = found, min(found.holders), length + self.page
        return holder, length

    def remove(self, sequence: int) -> None:
        """A sequence is gone, if it was there."""
        node = self.root
        for page in self._pages(self.tokens.pop(sequence, ())):
            child = node.children[page]
            child.holders.remove(sequence)
            if not child.holders:
                del node.children[page]
                return  # who holds a page holds those before it
            node = child

    def _pages(self, tokens: Sequence[int]) -> Iterator[tuple[int, ...]]:
        for start in range(0, len(tokens) - self.page + 1, self.page):
            yield tuple(tokens[start : start + self.page])
