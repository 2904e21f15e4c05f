"""An engine is kept for the next who needs one: on CUDA, another would capture its graphs again."""

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from glassformer.engine.engine import Engine
from glassformer.engine.paged_decoder import kept_dtype
from glassformer.models.transformer import LanguageModel

PAGE = 16  # tokens
_IDLE: WeakKeyDictionary[LanguageModel, Engine] = WeakKeyDictionary()


@contextmanager
def borrowed_engine(model: LanguageModel, *, tokens: int, rows: int) -> Iterator[Engine]:
    """An engine for so many tokens and rows, which nobody else uses meanwhile."""
    pages = -(-tokens // PAGE)
    engine = _IDLE.pop(model, None)
    if engine is None or not _serves(engine, model, pages, rows):
        engine = Engine(model, pages=pages, rows=rows, page_size=PAGE)
    try:
        yield engine
    finally:
        engine.forget()  # the weights may be others the next time
        if engine.decoder.device.type == "cuda":
            _IDLE[model] = engine


def _serves(engine: Engine, model: LanguageModel, pages: int, rows: int) -> bool:
    pool, scheduler = engine.decoder.pool, engine.scheduler
    same_type = pool.k.dtype == kept_dtype(model.tokens.table.weight)
    return pool.pages >= pages and scheduler.rows >= rows and same_type
