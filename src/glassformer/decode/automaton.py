"""Required words as an automaton: which words a branch has, and how many tokens it still needs.

A node is the longest suffix of the output that is a prefix of a required word. A state is a node
and the set of words that are complete. For every state a table holds the minimum number of tokens
until all words are complete, however they overlap, so a search knows exactly which tokens it can
still afford.

A required word must be a word by itself. A token of `continuing` right after it would make another
word of it ("faim", "faimes"), so a word is complete if another token follows, or none. Its opening
is its spelling without a space, which counts at the beginning of the output and after a token of
`separating` ("l'eau"). A word whose last token is separating, such as a sign, cannot be continued.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Int

Tokens = tuple[int, ...]
Node = tuple[bool, Tokens]  # whether there is a boundary before it, and its tokens

NEVER = 2**30  # more tokens than any row can have
END_CLASS = 0


@dataclass(frozen=True)
class RequiredWords:
    """The required words of a row.

    Attributes:
        words: The tokens of each word.
        openings: The spelling of each word at a boundary; () if it is the same.
        continuing: Tokens that turn a word before them into another word.
        separating: Tokens after which there is a boundary.
        at_boundary: Whether there is a boundary before the first token.
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
    def all_words(self) -> int:
        """The set of all words; sets are bit masks."""
        return (1 << len(self.words)) - 1

    def step(self, node: Node, token: int) -> Node:
        """The node after one more token."""
        for at_boundary, suffix in self._suffixes(node, token):
            anywhere, at_boundaries = self._prefixes
            if suffix in anywhere or (at_boundary and suffix in at_boundaries):
                return at_boundary, suffix
        return token in self._separating, ()

    def ending(self, node: Node) -> tuple[int, int]:
        """The words that end at a node, and those of them that no token can continue."""
        begins, tokens = node
        if not tokens:
            return 0, 0
        ending = 0
        for at_boundary, suffix in self._suffixes((begins, tokens[:-1]), tokens[-1]):
            for index, (word, opening) in enumerate(self._spellings):
                if suffix == word or (at_boundary and suffix == opening):
                    ending |= 1 << index
        return ending, ending if tokens[-1] in self._separating else 0

    def completed(self, node: Node, token: int) -> int:
        """The words that end at a node and are complete because this token follows."""
        ending, final = self.ending(node)
        return final if token in self._continuing else ending

    def complete_at(self, tokens: Sequence[int]) -> int | None:
        """The number of tokens after which all words are complete; None if some are missing.

        >>> words = RequiredWords(((7,), (1,)))
        >>> words.complete_at([4, 7, 1, 7]), words.complete_at([4, 7])
        (3, None)
        >>> words = RequiredWords(((5, 7),), openings=((7,),), continuing=(8,))
        >>> words.complete_at([7, 4]), words.complete_at([7, 8, 5, 7])
        (1, 4)
        """
        node, complete = self.start, 0
        for length, token in enumerate(tokens):
            complete |= self.completed(node, token)
            if complete == self.all_words:
                return length
            node = self.step(node, token)
        return len(tokens) if complete | self.ending(node)[0] == self.all_words else None

    def _suffixes(self, node: Node, token: int) -> Iterator[Node]:
        """All suffixes of a node and one more token, longest first."""
        at_boundary, tokens = node[0], (*node[1], token)
        for start in range(len(tokens)):
            yield at_boundary, tokens[start:]
            at_boundary = tokens[start] in self._separating

    @cached_property
    def _spellings(self) -> list[tuple[Tokens, Tokens]]:
        return list(zip(self.words, self.openings or [()] * len(self.words), strict=True))

    @cached_property
    def _prefixes(self) -> tuple[set[Tokens], set[Tokens]]:
        """All prefixes of words, and of openings."""
        return _prefixes(self.words), _prefixes(self.openings)

    @cached_property
    def _continuing(self) -> frozenset[int]:
        return frozenset(self.continuing)

    @cached_property
    def _separating(self) -> frozenset[int]:
        return frozenset(self.separating)


@dataclass(frozen=True, eq=False, slots=True)
class Automaton:
    """The automaton of some words as tables. State 0 is the start, the last state a dead end.

    Tokens that occur in no word differ only in whether they continue or separate words, so the
    tables are over classes of tokens. The end token is a class of its own; it leads to the dead
    end, as -1, unless all words are complete.

    Attributes:
        transitions: The state after a token of each class.
        remaining: The minimum number of tokens until all words are complete, for each state.
        class_of: The class of every token.
        token_of: The token of every class; -1 if it has several.
    """

    transitions: Int[np.ndarray, "S A"]
    remaining: Int[np.ndarray, " S"]
    class_of: Int[np.ndarray, " V"]
    token_of: Int[np.ndarray, " A"]


@lru_cache(maxsize=16)
def build_automaton(words: RequiredWords, vocab_size: int, end: int) -> Automaton:
    """The automaton of these words."""
    class_of, token_of, examples = _classes(words, vocab_size, end)
    nodes, steps, completed = _graph(words, examples)
    sets = words.all_words + 1
    ending = np.array([words.ending(node)[0] for node in nodes])
    remaining = _remaining(steps, completed, ending, words.all_words)  # (sets, nodes)
    complete = completed[:, None] | np.arange(sets)[None, :, None]
    transitions = steps[:, None] * sets + complete  # (nodes, sets, A - 1)
    same = np.arange(len(nodes) * sets).reshape(len(nodes), sets, 1)
    at_end = np.where(remaining.T[..., None] == 0, same, -1)
    table = np.concatenate([at_end, transitions], -1).reshape(len(nodes) * sets, -1)
    return Automaton(
        np.pad(table, ((0, 1), (0, 0)), constant_values=-1),
        np.append(remaining.T.ravel(), NEVER),
        class_of,
        token_of,
    )


def _classes(
    words: RequiredWords, vocab_size: int, end: int
) -> tuple[Int[np.ndarray, " V"], Int[np.ndarray, " A"], list[int]]:
    """The class of every token, the token of every class, and one token of each but the end's."""
    continues, separates = (
        np.isin(np.arange(vocab_size), some) for some in (words.continuing, words.separating)
    )
    alphabet = sorted({token for word in (*words.words, *words.openings) for token in word})
    key = 2 * continues + separates + 1  # 1 to 4, for tokens that occur in no word
    key[alphabet] = np.arange(len(alphabet)) + 5
    if end >= 0:
        key[end] = END_CLASS
    keys, examples, class_of = np.unique(key, return_index=True, return_inverse=True)
    token_of = np.where(keys >= 5, examples, -1)
    if keys[0] == END_CLASS:
        return class_of, token_of, examples[1:].tolist()
    return class_of + 1, np.concatenate([[-1], token_of]), examples.tolist()


def _graph(
    words: RequiredWords, examples: Sequence[int]
) -> tuple[list[Node], Int[np.ndarray, "nodes A"], Int[np.ndarray, "nodes A"]]:
    """All nodes, the node after a token of each class, and the words that token completes."""
    nodes, steps, completed = [words.start], [], []
    index = {words.start: 0}
    for node in nodes:  # grows as new nodes are found
        reached = [words.step(node, token) for token in examples]
        for new in reached:
            if new not in index:
                index[new] = len(nodes)
                nodes.append(new)
        steps.append([index[new] for new in reached])
        completed.append([words.completed(node, token) for token in examples])
    return nodes, np.array(steps), np.array(completed)


def _remaining(
    steps: Int[np.ndarray, "nodes A"],
    completed: Int[np.ndarray, "nodes A"],
    ending: Int[np.ndarray, " nodes"],
    all_words: int,
) -> Int[np.ndarray, "sets nodes"]:
    """The minimum number of tokens to all words, by the set of complete words and the node."""
    remaining = np.full((all_words + 1, len(steps)), NEVER)
    for complete in range(all_words, -1, -1):  # the set of complete words only grows
        remaining[complete, complete | ending == all_words] = 0
        while True:
            shorter = 1 + remaining[complete | completed, steps].min(1)
            if (shorter >= remaining[complete]).all():
                break
            remaining[complete] = np.minimum(remaining[complete], shorter)
    return remaining


def _prefixes(words: Sequence[Tokens]) -> set[Tokens]:
    return {word[:length] for word in words for length in range(1, len(word) + 1)}
