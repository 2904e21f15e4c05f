"""Many requests of different lengths through the engine, against Hugging Face's padded batches.

Hugging Face gets the requests sorted by the length of their prompts, in batches of the size that
was fastest here; on a GPU also all in one batch with a static cache, for which `generate` compiles
its steps. A batch ends with its longest answer, and the others are cut to their length. Its steps
are spared cuDNN's attention, as ours are: that is prepared anew for every length of the cache.
"""

import copy
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.nn.attention import sdpa_kernel

from glassformer.benchmarks.generation import ours
from glassformer.benchmarks.generation.contest import Bench, Contest, Peer, Side, TokenRows
from glassformer.benchmarks.generation.correctness import check
from glassformer.benchmarks.generation.llama import GPT2_SIZED, TINY, random_model
from glassformer.benchmarks.timing import seconds
from glassformer.config.decoding import DecodeConfig
from glassformer.core.kernels.fused import WITHOUT_CUDNN
from glassformer.engine import Engine, GenerationRequest
from glassformer.models.packing import for_inference
from glassformer.models.transformer import LanguageModel

BAR, AIM = 3.0, 6.0
BATCH_SIZES = (128,)  # and all in one; smaller ones take longer
PAGE = 16


@dataclass(frozen=True, slots=True)
class Ragged:
    """Requests: how many, and the lengths of prompts and answers between which they lie."""

    count: int
    prompts: tuple[int, int]
    answers: tuple[int, int]

    @property
    def longest(self) -> int:
        """The most tokens of a prompt and its answer."""
        return self.prompts[1] + self.answers[1]

    def drawn(self, vocabulary: int) -> tuple[list[list[int]], list[int]]:
        """Random prompts, and how many tokens to answer each with."""
        rng = random.Random(0)
        prompts = [
            [rng.randrange(1, vocabulary) for _ in range(rng.randint(*self.prompts))]
            for _ in range(self.count)
        ]
        return prompts, [rng.randint(*self.answers) for _ in prompts]


RAGGED = Ragged(256, (16, 512), (16, 256))
FEW = Ragged(9, (2, 11), (1, 7))


def ragged(bench: Bench) -> Iterator[Contest]:
    """Requests of many lengths, all at once."""
    size, requests = (TINY, FEW) if bench.small else (GPT2_SIZED, RAGGED)
    reference = random_model(size, requests.longest)
    prompts, answers = requests.drawn(size.vocabulary)
    dtype = torch.float32 if bench.small else torch.bfloat16
    model = ours.our_model(reference, size, requests.longest).to(bench.device, dtype)
    theirs = copy.deepcopy(reference).to(bench.device, dtype)
    yield Contest(
        case=f"{requests.count} ragged requests",
        tokens=sum(answers),
        ours=partial(engine_side, model, prompts, answers),
        peers={"Hugging Face": Peer(partial(best_batches, theirs, prompts, answers), BAR, AIM)},
        check=partial(check_rows, copy.deepcopy(reference).to(bench.device), prompts),
    )


def engine_side(
    model: LanguageModel, prompts: Sequence[Sequence[int]], answers: Sequence[int]
) -> Side:
    """Our engine, with room for all requests at once."""
    longest = max(len(prompt) + n for prompt, n in zip(prompts, answers, strict=True))
    pages = len(prompts) * -(-longest // PAGE)
    fast = for_inference(model)
    assert isinstance(fast, LanguageModel)
    engine = Engine(fast, pages=pages, page_size=PAGE, rows=len(prompts))
    requests = [
        GenerationRequest(prompt=tuple(prompt), decode=DecodeConfig(max_length=n))
        for prompt, n in zip(prompts, answers, strict=True)
    ]

    def generate() -> TokenRows:
        engine.forget()  # what the last turn has read
        return [found.tokens for found in engine.answers(requests)]

    return generate


def best_batches(model: Any, prompts: Sequence[Sequence[int]], answers: Sequence[int]) -> Side:
    """Hugging Face's padded batches, in the way that takes the least time."""
    batches = partial(padded_batches, model, prompts, answers)
    whole = len(prompts)
    sides = [partial(batches, size) for size in {*(n for n in BATCH_SIZES if n < whole), whole}]
    if model.device.type == "cuda":
        sides.append(partial(batches, whole, cache_implementation="static"))
        sides[-1]()  # compiles
    sides[0]()  # libraries initialise
    return min(sides, key=lambda side: seconds(side, model.device))


@torch.no_grad()
@sdpa_kernel(WITHOUT_CUDNN)
def padded_batches(
    model: Any,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[int],
    size: int,
    **options: str,
) -> TokenRows:
    """Greedy answers by `generate`, some prompts at a time, padded on the left."""
    found: dict[int, list[int]] = {}
    order = sorted(range(len(prompts)), key=lambda row: len(prompts[row]), reverse=True)
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        longest = max(len(prompts[row]) for row in rows)
        ids = [[0] * (longest - len(prompts[row])) + list(prompts[row]) for row in rows]
        tokens = torch.tensor(ids, device=model.device)
        output = model.generate(
            tokens,
            attention_mask=(tokens > 0).long(),
            do_sample=False,
            max_new_tokens=max(answers[row] for row in rows),
            **options,
        )
        for row, line in zip(rows, output[:, longest:].tolist(), strict=True):
            found[row] = line[: answers[row]]
    return [found[row] for row in range(len(prompts))]


def check_rows(
    reference: Any, prompts: Sequence[Sequence[int]], outputs: Mapping[str, TokenRows]
) -> list[str]:
    """Refuse a side that generated other than the likeliest tokens; say how many rows agree."""
    for row, prompt in enumerate(prompts):
        tokens = torch.tensor([prompt], device=reference.device)
        check({name: [rows[row]] for name, rows in outputs.items()}, reference, tokens)
    first, second = outputs.values()
    same = sum(list(a) == list(b) for a, b in zip(first, second, strict=True))
    return [f"{same} of {len(prompts)} rows of {' and '.join(outputs)} agree"]
