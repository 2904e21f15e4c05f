"""Named data sets. Some are built in; others are under `$GLASSFORMER_DATA` or in the cache.

A row has what its job needs: text and label; path and label; source and target; audio and text;
text alone; user, item, rating and time. Its `split` is train, valid or test, empty if not chosen
yet; a set for pretraining has none. A group column marks rows that must stay in one split. To add a
set, write a file with an `Entry` and list it in `CATALOG`.
"""

from glassformer.data.catalog.cmudict import CMUDICT
from glassformer.data.catalog.corpora import TANG_POETRY, TINY_SHAKESPEARE
from glassformer.data.catalog.dates import DATES
from glassformer.data.catalog.films import FILMS
from glassformer.data.catalog.imdb import IMDB, UNLABELLED
from glassformer.data.catalog.languages import LANGUAGES
from glassformer.data.catalog.morse import MORSE
from glassformer.data.catalog.movielens import MOVIELENS
from glassformer.data.catalog.multi30k import MULTI30K
from glassformer.data.catalog.pictures import CIFAR10, DIGITS, MNIST
from glassformer.data.catalog.python_reference import PYTHON_REFERENCE
from glassformer.data.catalog.sentences import CR, MPQA, MR, SUBJ, TREC
from glassformer.data.catalog.speech import AN4, FSDD
from glassformer.data.catalog.storage import Entry
from glassformer.data.catalog.tatoeba import TATOEBA
from glassformer.errors import GlassformerError, unknown


def open_entry(name: str) -> Entry:
    """The set of this name, or the first of a family such as multi30k, which shares its files."""
    if name not in CATALOG and not family(name):
        raise GlassformerError(unknown("data set", name, CATALOG))
    return CATALOG[name if name in CATALOG else family(name)[0]]


def family(name: str) -> list[str]:
    """The sets that are read from the files of one: multi30k-en-de, multi30k-de-en ..."""
    return [other for other in CATALOG if other.startswith(f"{name}-")]


CATALOG: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        *(LANGUAGES, DATES, MORSE, PYTHON_REFERENCE, DIGITS, FILMS, IMDB, UNLABELLED),
        *(TREC, MR, SUBJ, CR, MPQA),
        *MULTI30K,
        *TATOEBA,
        *(MNIST, CIFAR10),
        *(CMUDICT, AN4, FSDD, TINY_SHAKESPEARE, TANG_POETRY),
        *MOVIELENS,
    )
}
