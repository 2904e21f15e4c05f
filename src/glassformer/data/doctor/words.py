"""Words in any script, found fast: near enough to the tokens that will be learned."""

import re

# Scripts without blanks give a word a character, as the tokens "words" do.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:['’][^\W{UNSPACED}]+)*"

_words = re.compile(WORD).findall
_unspaced = re.compile(f"[{UNSPACED}]").match
_tokens = re.compile(rf"{WORD}|[^\w\s]").findall


def words_of(text: str) -> list[str]:
    """Its words, without case and signs.

    >>> words_of("A film, isn't it? 好片")
    ['a', 'film', "isn't", 'it', '好', '片']
    """
    return _words(text.casefold())


def is_spaced(word: str) -> bool:
    """Whether a word is of a script that sets blanks between words.

    >>> is_spaced("film"), is_spaced("片")
    (True, False)
    """
    return _unspaced(word) is None


def count_tokens(text: str) -> int:
    """Words and single signs.

    >>> count_tokens("A film, isn't it? 好片")
    8
    """
    return len(_tokens(text))
