"""Required words as an automaton: what a row has of its words, and how much it still needs.

A node is the longest end of the tokens written so far that one of the words begins with. A state is
a node and the set of words that are complete. For every state a table holds the least number of
tokens until all words are complete, whatever way they overlap; so a search knows exactly which
tokens it can still afford.

Words stand by themselves. A token of `continuing` right behind a word would make another word of
it ("faim", "faimes"), so a word is complete when something else follows, or nothing. Its opening is
how it is spelt where no letter stands before it: at the beginning, or behind a token of
`separating`. A word that ends with such a token, a sign, cannot be continued.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Int

Tokens = tuple[int, ...]
Node = tuple[bool, Tokens]  # whether it begins where a word may begin, and its tokens

NEVER = 2**30  # more tokens than any row can have
END_CLASS = 0


@dataclass(frozen=True)
class Words:
    """The words of a row.

    Attributes:
        words: The tokens of each.
        openings: How each is spelt where no letter stands before it; () where that is the same.
        continuing: Tokens that make another word of a word they follow.
        separating: Tokens behind which a word may begin.
        at_boundary: Whether a word may begin where the row begins.
    """

    words: tuple[Tokens, ...]
    openings: tuple[Tokens, ...] = ()
    continuing: Tokens = ()
    separating: Tokens = ()
    at_boundary: bool = True

    @property
    def start(self) -> Node:
        """The node before the first token."""
        return self.at_boundary, ()

    @property
    def everything(self) -> int:
        """The set of all words; a set has the bit of every word in it."""
        return (1 << len(self.words)) - 1

    def step(self, node: Node, token: int) -> Node:
        """The node after one more token."""
        for at_boundary, end in self._ends(node, token):
            if end in self._beginnings[0] or (at_boundary and end in self._beginnings[1]):
                return at_boundary, end
        return token in self._separating, ()

    def ending(self, node: Node) -> tuple[int, int]:
        """The words that end with this node, and those among them that nothing can continue."""
        begins, tokens = node
        if not tokens:
            return 0, 0
        ends = 0
        for at_boundary, end in self._ends((begins, tokens[:-1]), tokens[-1]):
            for number, (word, opening) in enumerate(self._spellings):
                if end == word or (at_boundary and end == opening):
                    ends |= 1 << number
        return ends, ends if tokens[-1] in self._separating else 0

    def gained(self, node: Node, token: int) -> int:
        """The words that are complete as this token follows the node."""
        ends, fixed = self.ending(node)
        return fixed if token in self._continuing else ends

    def complete_at(self, tokens: Sequence[int]) -> int | None:
        """After how many of these tokens all words are complete; None while one is missing.

        >>> Words(((7,), (1,))).complete_at([4, 7, 1, 7]), Words(((7,), (1,))).complete_at([4, 7])
        (3, None)
        >>> words = Words(((5, 7),), openings=((7,),), continuing=(8,))
        >>> words.complete_at([7, 4]), words.complete_at([7, 8, 5, 7])
        (1, 4)
        """
        node, complete = self.start, 0
        for length, token in enumerate(tokens):
            complete |= self.gained(node, token)
            if complete == self.everything:
                return length
            node = self.step(node, token)
        return len(tokens) if complete | self.ending(node)[0] == self.everything else None

    def _ends(self, node: Node, token: int) -> Iterator[Node]:
        """All ends of a node and one more token, the longest first."""
        at_boundary, tokens = node[0], (*node[1], token)
        for start in range(len(tokens)):
            yield at_boundary, tokens[start:]
            at_boundary = tokens[start] in self._separating

    @cached_property
    def _spellings(self) -> list[tuple[Tokens, Tokens]]:
        return list(zip(self.words, self.openings or [()] * len(self.words), strict=True))

    @cached_property
    def _beginnings(self) -> tuple[set[Tokens], set[Tokens]]:
        """What words begin with, anywhere and at a boundary."""
        words, openings = zip(*self._spellings, strict=True) if self.words else ((), ())
        return _beginnings(words), _beginnings(openings)

    @cached_property
    def _continuing(self) -> frozenset[int]:
        return frozenset(self.continuing)

    @cached_property
    def _separating(self) -> frozenset[int]:
        return frozenset(self.separating)


@dataclass(frozen=True, eq=False, slots=True)
class Automaton:
    """The tables of some words. State 0 is the start; in the last one nothing helps any more.

    Tokens that no word has are alike, but for whether they continue or separate words; so tokens
    come in classes. The end is a class of its own, which leads to the last state, called -1, while
    a word is missing.

    Attributes:
        following: The state after a token of each class.
        missing: The least number of tokens that a state needs to have all words.
        class_of: The class of every token.
        token_of: The token of every class; -1 where it has several.
    """

    following: Int[np.ndarray, "S A"]
    missing: Int[np.ndarray, " S"]
    class_of: Int[np.ndarray, " V"]
    token_of: Int[np.ndarray, " A"]


@lru_cache(maxsize=16)
def automaton_of(words: Words, vocab_size: int, end: int) -> Automaton:
    """The tables of these words."""
    class_of, token_of, examples = _classes(words, vocab_size, end)
    nodes, steps, gains = _graph(words, examples)
    sets = words.everything + 1
    ends = np.array([words.ending(node)[0] for node in nodes])
    missing = _missing(steps, gains, ends, words.everything)  # (sets, nodes)
    each = np.arange(sets)[None, :, None]
    following = steps[:, None] * sets + (gains[:, None] | each)  # (nodes, sets, A - 1)
    same = np.arange(len(nodes) * sets).reshape(len(nodes), sets, 1)
    at_end = np.where(missing.T[..., None] == 0, same, -1)
    table = np.concatenate([at_end, following], -1).reshape(len(nodes) * sets, -1)
    return Automaton(
        np.pad(table, ((0, 1), (0, 0)), constant_values=-1),
        np.append(missing.T.ravel(), NEVER),
        class_of,
        token_of,
    )


def _classes(
    words: Words, vocab_size: int, end: int
) -> tuple[Int[np.ndarray, " V"], Int[np.ndarray, " A"], list[int]]:
    """The class of every token, the token of every class, and an example of each but the end's."""
    continues, separates = (
        np.isin(np.arange(vocab_size), some) for some in (words.continuing, words.separating)
    )
    alphabet = sorted({token for word in (*words.words, *words.openings) for token in word})
    key = 2 * continues + separates + 1  # of tokens that no word has
    key[alphabet] = np.arange(len(alphabet)) + 5
    if end >= 0:
        key[end] = END_CLASS
    keys, examples, class_of = np.unique(key, return_index=True, return_inverse=True)
    token_of = np.where(keys >= 5, examples, -1)
    if keys[0] == END_CLASS:
        return class_of, token_of, examples[1:].tolist()
    return class_of + 1, np.concatenate([[-1], token_of]), examples.tolist()


def _graph(
    words: Words, examples: Sequence[int]
) -> tuple[list[Node], Int[np.ndarray, "nodes A"], Int[np.ndarray, "nodes A"]]:
    """All nodes, where a token of each class leads from them, and the words it completes."""
    nodes, steps, gains = [words.start], [], []
    number = {words.start: 0}
    for node in nodes:  # which grows meanwhile
        reached = [words.step(node, token) for token in examples]
        for new in reached:
            if new not in number:
                number[new] = len(nodes)
                nodes.append(new)
        steps.append([number[new] for new in reached])
        gains.append([words.gained(node, token) for token in examples])
    return nodes, np.array(steps), np.array(gains)


def _missing(
    steps: Int[np.ndarray, "nodes A"],
    gains: Int[np.ndarray, "nodes A"],
    ends: Int[np.ndarray, " nodes"],
    everything: int,
) -> Int[np.ndarray, "sets nodes"]:
    """The fewest tokens from each node, with each set of words complete, to all of them."""
    missing = np.full((everything + 1, len(steps)), NEVER)
    for complete in range(everything, -1, -1):  # a set leads to itself and to larger ones
        missing[complete, complete | ends == everything] = 0
        while True:
            nearer = 1 + missing[complete | gains, steps].min(1)
            if (nearer >= missing[complete]).all():
                break
            missing[complete] = np.minimum(missing[complete], nearer)
    return missing


def _beginnings(words: Sequence[Tokens]) -> set[Tokens]:
    return {word[:length] for word in words for length in range(1, len(word) + 1)}
