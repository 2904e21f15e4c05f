"""Chinese in one script: traditional characters as simplified ones, by OpenCC.

What is written in both scripts is learned once, and either is understood.
"""

from functools import lru_cache
from typing import Any

from glassformer.errors import GlassformerError


def simplified(text: str) -> str:
    """The text with its traditional characters simplified; others stay.

    >>> simplified("這是一本書。 A book")
    '这是一本书。 A book'
    """
    return text if text.isascii() else str(_to_simplified().convert(text))


@lru_cache
def _to_simplified() -> Any:
    try:
        from opencc import OpenCC
    except ImportError:
        raise GlassformerError(
            "reading traditional Chinese as simplified (data.tokenizer.simplified) needs opencc, "
            "which is not installed; pip install 'glassformer[chinese]'"
        ) from None
    return OpenCC("t2s")
