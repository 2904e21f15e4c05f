"""Compile attention, stacks and cached steps, and count how often; test_compile runs it."""

import sys
from dataclasses import replace

import torch

from glassformer.config import AttentionConfig, PositionConfig, StackConfig
from glassformer.core.attention import Heads, MultiHeadAttention
from glassformer.core.caches import FixedCache
from glassformer.core.layout import Layout
from glassformer.core.masks import causal, everything
from glassformer.core.positions import make_position
from glassformer.models.stacks import Decoder, Encoder

D, H, G, K, B = 24, 6, 2, 4, 3
LENGTHS = (5, 7, 11, 13, 17, 19)


class Counting:
    """A backend that counts how often it is asked to compile."""

    def __init__(self, backend: str) -> None:
        self.backend, self.count = torch._dynamo.lookup_backend(backend), 0

    def __call__(self, graph, inputs):
        self.count += 1
        return self.backend(graph, inputs)


def check(name, layer, calls, backend, most):
    """Every call compiled equals the call as it is, with at most `most` compilations."""
    torch._dynamo.reset()
    counting = Counting(backend)
    fast = torch.compile(layer, backend=counting, fullgraph=True)
    for make in calls:
        torch.testing.assert_close(fast(**make()), layer(**make()))
    print(f"{name}: {counting.count} compilations for {len(calls)} calls")
    assert counting.count <= most, f"{name} compiled {counting.count} times"


def whole(position, mask, ragged):
    """Calls with whole sequences of growing length."""

    def call(length):
        x = torch.randn(B, length, D, generator=torch.Generator().manual_seed(length))
        layout = Layout.padded([length, 2, 3], longest=length) if ragged else None
        return lambda: {"x": x, "mask": mask, "position": position, "layout": layout}

    return [call(length) for length in LENGTHS]


def steps(position):
    """One new token at a time into a fixed cache, a cache for each of the two that are compared."""
    caches = [FixedCache(B, 16, heads=G, key_width=K, value_width=K) for _ in range(2)]

    def call(step):
        x = torch.randn(B, 1, D, generator=torch.Generator().manual_seed(step))
        turn = iter(caches)
        return lambda: {"x": x, "mask": causal, "position": position, "cache": next(turn)}

    return [call(step) for step in range(8)]


def stacks(backend, position):
    """An encoder, a decoder that looks at its memory, and its cached step."""
    attention, scheme = (
        AttentionConfig(heads=H, kv_heads=G, window=(4, 0)),
        PositionConfig(position),
    )
    config = StackConfig(dim=D, depth=2, dropout=0.0, position=scheme, attention=attention)
    encoder, decoder = Encoder(config).eval(), Decoder(config, memory_dim=D).eval()
    source = Layout.padded([7, 2, 3])
    memory = decoder.keep(torch.randn(B, 7, D), source)

    def whole(length, **more):
        x = torch.randn(B, length, D, generator=torch.Generator().manual_seed(length))
        layout = Layout.padded([length, 2, 3], longest=length)
        return lambda: {"x": x, "layout": layout, **more}

    check("encoder", encoder, [whole(length) for length in LENGTHS], backend, most=2)
    calls = [whole(length, memory=memory) for length in LENGTHS]
    check("decoder", decoder, calls, backend, most=2)

    cached_steps("decoder", decoder, backend, memory=memory)
    learned = PositionConfig("learned")
    table = replace(config, position=learned, max_length=11)  # less than the cache has room for
    cached_steps("learned positions", Decoder(table).eval(), backend)


def cached_steps(name, decoder, backend, **more):
    """One new token at a time into fixed caches."""
    sizes = {"heads": G, "key_width": D // H, "value_width": D // H}
    sets = [[FixedCache(B, 16, **sizes) for _ in decoder.blocks] for _ in range(2)]

    def step(number):
        x = torch.randn(B, 1, D, generator=torch.Generator().manual_seed(number))
        turn = iter(sets)
        layout = Layout.full(B, 1)
        return lambda: {"x": x, "layout": layout, "caches": next(turn), **more}

    check(f"{name}, cached step", decoder, [step(n) for n in range(8)], backend, most=1)


def main(backend, names):
    """These position schemes, whole and step by step; then ragged rows, another mask, stacks."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(D, Heads(H, G)).eval()
    with torch.no_grad():
        for name in names:
            position = make_position(name, D, H, 32)
            check(f"{name}, whole", layer, whole(position, causal, False), backend, most=2)
            check(f"{name}, cached step", layer, steps(position), backend, most=1)
        check("ragged", layer, whole(None, everything, True), backend, most=2)
        stacks(backend, "rotary")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], sys.argv[2:])
