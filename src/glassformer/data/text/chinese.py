"""Chinese in one script: traditional characters as simplified ones, by OpenCC.

The model learns one script, and inputs in either are understood.
"""

from functools import lru_cache
from typing import Any

from glassformer.errors import GlassformerError, install

TO_SIMPLIFIED = "t2s"
TO_TRADITIONAL = "s2hk"  # as in Hong Kong, which leaves more of what both scripts share


def simplified(text: str) -> str:
    """The text with its traditional characters simplified; others stay.

    >>> simplified("這是一本書。 A book")
    '这是一本书。 A book'
    """
    return text if text.isascii() else str(_converter(TO_SIMPLIFIED).convert(text))


def traditional(text: str) -> str:
    """The inverse, which is not always exact.

    >>> traditional("这是一本书。 A book")
    '這是一本書。 A book'
    """
    return text if text.isascii() else str(_converter(TO_TRADITIONAL).convert(text))


@lru_cache
def _converter(direction: str) -> Any:
    try:
        from opencc import OpenCC
    except ImportError:
        raise GlassformerError(
            "reading traditional Chinese as simplified (data.tokenizer.simplified) needs opencc, "
            f"which is not installed; {install('chinese')}"
        ) from None
    return OpenCC(direction)
