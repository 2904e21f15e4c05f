"""The engine: many requests at once, by continuous batching over paged caches.

    generation       a request, and how far its answer has come
    progress         what a step reports
    paged_decoder    a decoder whose keys and values lie in pages, and how it reads prompts
    prefixes         which sequences begin alike and share pages
    scheduler        who is worked on, and how much of each prompt is read in a step
    steps            the newest token of all running requests: three ways to read it
    rows             on a CPU, from keys and values that lie end to end
    paged_steps      on CUDA, by graphs, with a kernel that reads pages (`core.steps`)
    fused_step       tokens through a model that is laid out for steps, for two of these
    searching        searches that began together, whose branches are rows of the same steps
    searches         all that are under way
    sampling         the next token of many requests, each with its own settings
    engine           all of it, step by step
    borrowing        an engine that is kept for the next who needs one

Requests of any length join and leave at every step (Yu et al., "Orca", 2022), in memory that is
divided into pages (Kwon et al., "PagedAttention", 2023). A long prompt is read in chunks, between
which the others go on (Agrawal et al., "SARATHI", 2023). The noise of a sample depends on the
request's own seed and on the number of the token, so an answer does not depend on its company.

Searches here are for models with a source; beam search with a language model is in `decode` alone.
Requests are admitted in the order of their arrival, and none that has begun gives way to another.
"""

from glassformer.engine.borrowing import borrowed_engine
from glassformer.engine.engine import Engine
from glassformer.engine.generation import GenerationRequest, Source
from glassformer.engine.paged_decoder import can_page
from glassformer.engine.progress import Progress
from glassformer.engine.searching import SearchRequest

__all__ = [
    "Engine",
    "GenerationRequest",
    "Progress",
    "SearchRequest",
    "Source",
    "borrowed_engine",
    "can_page",
]
