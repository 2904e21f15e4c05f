"""Translation, measured: our decoding against Hugging Face's `generate` and CTranslate2.

All have the same random weights (`marian.py`) and translate the same 32 sentences of log-normal
lengths. As the weights are random, the length of the output is fixed:

    even      every row generates EVEN tokens: END is never generated, and a limit stops all rows
    ragged    every row generates as many tokens as its source has, END last: ours by a limit per
              row, theirs by a logits processor. CTranslate2 has no equivalent.

In the even case nothing is forced, so all outputs must agree, which `agreement` counts. Ours is
given padded rows like theirs, and on a CPU the packed twin that a run uses for prediction.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.benchmarks import marian
from glassformer.benchmarks.layers import ragged
from glassformer.benchmarks.marian import END, Size
from glassformer.benchmarks.pairs import Pair
from glassformer.benchmarks.timing import Work
from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.core.layout import Layout
from glassformer.decode import Request, decode
from glassformer.models.incremental import translating
from glassformer.models.packing import packed_twin

ROWS, MEDIAN, EVEN = 32, 20, 32
SIZES = (Size(vocabulary=32_000), Size(vocabulary=58_101))
WIDTHS = {"greedy": 1, "beam 4": 4}
DTYPES = {"cpu": ("float32",), "cuda": ("float32", "bfloat16")}
OURS, HUGGING_FACE, CTRANSLATE2 = "glassformer", "Hugging Face", "CTranslate2"

TokenRows = list[tuple[int, ...]]


def even_pairs(device: torch.device) -> tuple[list[Pair], list[str]]:
    """Rows of equal length, against all peers, and why one is skipped."""
    why = marian.no_ctranslate2(device)
    peers = [HUGGING_FACE] if why else [HUGGING_FACE, CTRANSLATE2]
    return pairs(device, peers, [EVEN] * ROWS), [why] if why else []


def ragged_pairs(device: torch.device) -> list[Pair]:
    """Rows of different lengths, against Hugging Face."""
    return pairs(device, [HUGGING_FACE], ragged(MEDIAN, ROWS))


def pairs(device: torch.device, peers: Sequence[str], limits: list[int]) -> list[Pair]:
    """Every size, type and method against every peer; `limits` are the output lengths."""
    return [
        Pair(
            case=f"{method}, vocabulary {size.vocabulary:,}, {dtype}",
            length=max(limits),
            ours=OURS,
            theirs=peer,
            make=partial(works, size, device, dtype, width, limits, peer),
        )
        for size in SIZES
        for dtype in DTYPES[device.type]
        for method, width in WIDTHS.items()
        for peer in peers
    ]


def describe_batch(device: torch.device) -> dict[str, Any]:
    """Rows and data types, for the description of the machine."""
    return {"dtype": " and ".join(DTYPES[device.type]), "batch": ROWS}


def agreement(pair: Pair) -> str:
    """How many rows have the same output."""
    our_rows, their_rows = (work() for work in pair.make())
    assert isinstance(our_rows, list)
    assert isinstance(their_rows, list)
    same = sum(one == other for one, other in zip(our_rows, their_rows, strict=True))
    return f"{pair.case}: {same} of {len(our_rows)} rows agree with {pair.theirs}"


def works(
    size: Size, device: torch.device, dtype: str, width: int, limits: list[int], peer: str
) -> tuple[Work, Work]:
    """Ours and a peer's."""
    contest = contest_of(size, device, dtype)
    theirs: Callable[[int, list[int]], TokenRows]
    theirs = contest.hugging_face_output if peer == HUGGING_FACE else contest.ctranslate2_output
    return partial(contest.our_output, width, limits), partial(theirs, width, limits)


@lru_cache(maxsize=1)  # models are large, and sizes are measured one after the other
def contest_of(size: Size, device: torch.device, dtype: str) -> "Contest":
    """The models of one size, built once."""
    return Contest(size, device, dtype)


class Contest:
    """The same translator in each library, and the sentences."""

    def __init__(self, size: Size, device: torch.device, dtype: str) -> None:
        self.size, self.device, self.dtype = size, device, dtype
        base = marian.hugging_face(size)
        kind = getattr(torch, dtype)
        self.ours = packed_twin(marian.ours(base, size).to(device, kind))
        self.theirs = base.to(device, kind)
        lengths = ragged(MEDIAN, ROWS)
        self.layout = Layout.padded(lengths, device=device)
        rng = torch.Generator().manual_seed(0)
        drawn = torch.randint(END + 1, size.pad, (ROWS, max(lengths)), generator=rng)
        self.samples = drawn.to(device).masked_fill(~self.layout.real, size.pad)

    @cached_property
    def converted(self) -> Any:
        """CTranslate2's."""
        return marian.ctranslate2(self.theirs, self.size, self.device, self.dtype)

    def our_output(self, width: int, limits: list[int]) -> TokenRows:
        """The output of our model, each row up to its limit."""
        method = "greedy" if width == 1 else "beam"
        config = DecodeConfig(method=method, max_length=max(limits), beam=BeamConfig(width=width))
        scorer = translating(self.ours, self.samples, self.layout, first=self.size.pad)
        found = decode(scorer, Request(end=END, limits=limits), config)
        return [row[0].tokens for row in found]

    @torch.no_grad()
    def hugging_face_output(self, width: int, limits: list[int]) -> TokenRows:
        """The output of `generate`; rows with a shorter limit end there with END."""
        longest = max(limits)
        early = {} if min(limits) == longest else {"logits_processor": [ending(limits, width)]}
        output = self.theirs.generate(
            self.samples,
            attention_mask=self.layout.real.long(),
            do_sample=False,
            num_beams=width,
            length_penalty=1.0,
            early_stopping=width > 1,
            max_new_tokens=longest,
            **early,
        )
        return [tuple(row) for row in output[:, 1:].tolist()]

    def ctranslate2_output(self, width: int, limits: list[int]) -> TokenRows:
        """The output of CTranslate2, all rows up to one limit."""
        rows = zip(self.samples.tolist(), self.layout.lengths.tolist(), strict=True)
        found = self.converted.translate_batch(
            [[str(token) for token in row[:length]] for row, length in rows],
            beam_size=width,
            max_decoding_length=max(limits),
        )
        return [tuple(map(int, row.hypotheses[0])) for row in found]


def ending(limits: list[int], width: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A logits processor that forces END as the last token of each row."""
    last = torch.tensor(limits).repeat_interleave(width)  # (B W,)

    def processor(
        tokens: Int[Tensor, "rows T"], scores: Float[Tensor, "rows V"]
    ) -> Float[Tensor, "rows V"]:
        now = (last == tokens.shape[1]).nonzero().flatten().to(scores.device)  # PAD comes first
        scores[now] = -torch.inf
        scores[now, END] = 0.0
        return scores

    return processor
