"""On a GPU: stacks run packed inside, and a pack of one shape is captured once for all batches."""

from dataclasses import replace

import pytest
import torch
from torch.utils import _pytree as pytree

from glassformer.config import AttentionConfig, ModelConfig, PositionConfig, StackConfig
from glassformer.core.layout import Layout
from glassformer.models.build import build_transformer
from glassformer.models.stacks import Encoder

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("without_shape_hook")]

CONFIG = StackConfig(
    dim=64, depth=2, dropout=0.0, max_length=64, attention=AttentionConfig(heads=4)
)
V, SOURCE, TARGET = 29, (53, 7, 0, 31), (17, 41, 5, 3)


@pytest.mark.parametrize("window", [0, (5, 0)])
@pytest.mark.parametrize("position", ["rotary", "learned", "alibi"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_padded_batch_runs_packed_inside_and_answers_as_on_a_cpu(position, dtype, window):
    attention = replace(CONFIG.attention, window=window)
    stack = replace(CONFIG, position=PositionConfig(position), attention=attention)
    model = build_transformer(ModelConfig(encoder=stack, decoder=stack), vocabulary=V).eval()
    x, y = torch.randint(0, V, (4, 53)), torch.randint(0, V, (4, 41))
    source, target = Layout.padded(SOURCE), Layout.padded(TARGET)
    with torch.no_grad():
        expected = model(x, y, source=source, target=target)[target.real]
        model = model.to("cuda", dtype)
        here = {"source": source.to("cuda"), "target": target.to("cuda")}
        answer = model(x.cuda(), y.cuda(), **here)[target.real.cuda()]
    rough = {"atol": 0.1, "rtol": 0.1} if dtype == torch.bfloat16 else {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(answer.float().cpu(), expected, **rough)


def test_a_batch_padded_wider_than_its_layout_is_refused():
    x, layout = torch.randn(4, 59, 64, device="cuda"), Layout.padded(SOURCE, device="cuda")
    with pytest.raises(ValueError, match=r"^the batch holds \(4, 59\) tokens, but its layout"):
        Encoder(CONFIG).to("cuda")(x, layout=layout)


@torch.no_grad()
def test_one_captured_graph_serves_every_batch_that_fills_the_budget():
    encoder = Encoder(CONFIG).eval().to("cuda", torch.bfloat16)
    shape = {"longest": 53, "budget": 128, "rows": 9, "device": "cuda"}
    first, second = Layout.packed(SOURCE, **shape), Layout.packed((30, 50, 40), **shape)
    x = torch.randn(128, 64, device="cuda", dtype=torch.bfloat16)
    static, layout = x.clone(), pytree.tree_map_only(torch.Tensor, torch.clone, first)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        encoder(static, layout=layout)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = encoder(static, layout=layout)
    for batch in (second, first):
        static.copy_(torch.randn_like(x))
        for old, new in zip(pytree.tree_leaves(layout), pytree.tree_leaves(batch), strict=True):
            if isinstance(old, torch.Tensor):
                old.copy_(new)
        graph.replay()
        expected = encoder(static, layout=batch)
        torch.testing.assert_close(answer, expected)
