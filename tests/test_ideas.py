"""docs/dev/ideas.md is true: every name in it exists, and what it calls an error is one."""

import ast
import importlib
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from glassformer.core.attention import MultiHeadAttention, describe
from glassformer.core.kernels.plain import attention_weights
from glassformer.core.layout import Layout
from glassformer.core.masks import causal
from glassformer.core.norms import LayerNorm
from glassformer.core.positions import Learned
from glassformer.models.frontends import Subsampling
from glassformer.models.pooling import MeanPool

ROOT = Path(__file__).parents[1]
IDEAS = (ROOT / "docs" / "dev" / "ideas.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")

DOCUMENTS = ("000", "001", "002", "003", "004")
HERE = ("idea", "here", "what to look at")
ERRORS = ("the document says", "what is right", "shown by")

B, H, T, S, K = 2, 3, 5, 7, 11  # all different and prime, so a swapped axis cannot hide
D = H * K


# Reading it


def tables(text):
    """(heading, columns, rows) of every table of a document."""
    heading, found, lines = "", [], [*text.splitlines(), ""]
    for line in lines:
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif not line.startswith("|"):
            found.append(None)
        else:
            cells = tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            if not found or found[-1] is None:
                found.append((heading, cells, []))
            elif set(line) - set("|-"):
                found[-1][2].append(cells)
    return [table for table in found if table is not None]


def rows_of(columns):
    return [row for _, found, rows in tables(IDEAS) if found == columns for row in rows]


def places(cell):
    """(file, name) pairs of a cell: a file in backticks, and after it names that live there."""
    file, found = None, []
    for word in re.findall(r"`([^`]+)`", cell):
        if word.endswith(".py"):
            file = word
        elif file is not None:
            found.append((file, word))
    return found


def bound_in(path):
    """The names that a file defines rather than imports, methods as Class.method."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name):
                yield name
            case ast.ClassDef(name, body=body):
                yield name
                yield from (f"{name}.{part.name}" for part in body if hasattr(part, "name"))
            case ast.Assign(targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(ast.Name(name)):
                yield name


def complaint(file, name):
    """Why this file is not where this name lives; None when it is."""
    path = ROOT / file
    if not path.is_file():
        return f"there is no {file}"
    names = set(bound_in(path))
    if not file.startswith("src/"):
        return None if name in names else f"{file} has no {name}"
    if name.partition(".")[0] not in names:
        return f"{file} does not define {name}"
    found = importlib.import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    for part in name.split("."):
        if not hasattr(found, part):
            return f"{file} has no {name}"
        found = getattr(found, part)
    return None


def is_sentence(cell):
    return len(cell.split()) > 1 and cell.endswith(".")


CLAIMED = sorted(
    {place for row in rows_of(HERE) for place in places(row[1])}
    | {place for row in rows_of(ERRORS) for place in places(row[2])}
)


@pytest.mark.parametrize(("file", "name"), CLAIMED, ids=[" ".join(place) for place in CLAIMED])
def test_what_the_ideas_name_exists(file, name):
    assert complaint(file, name) is None


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("src/glassformer/core/attention.py", "MultiHeadAttentoin"),
        ("src/glassformer/core/attention.py", "MultiHeadAttention.wieghts"),
        ("src/glassformer/core/attention.py", "Layout"),  # used there, at home elsewhere
        ("src/glassformer/core/attentions.py", "MultiHeadAttention"),
        ("examples/reverse.py", "loss_of"),
        ("tests/test_ideas.py", "test_what_the_ideas_name_exist"),
    ],
)
def test_a_wrong_name_is_noticed(file, name):
    assert complaint(file, name) is not None


@pytest.mark.parametrize("columns", [HERE, ERRORS], ids=["ideas", "errors"])
def test_every_document_has_its_tables(columns):
    numbers = [re.findall(r"\b00\d\b", h)[0] for h, found, _ in tables(IDEAS) if found == columns]
    assert numbers == list(DOCUMENTS)


def test_every_table_is_one_of_the_known_ones_and_every_row_fills_it():
    known = {HERE, ERRORS}
    for heading, columns, rows in tables(IDEAS):
        assert columns in known or heading in ("Where the ideas live", "What each layer costs")
        assert rows
        for row in rows:
            assert len(row) == len(columns)
            assert all(row)


def test_every_idea_has_a_place_and_a_sentence():
    for idea, here, look in rows_of(HERE):
        assert places(here), idea
        assert re.sub(r"`[^`]+`", "", here).strip() == "", here  # nothing but places
        files = re.findall(r"`([^`]+\.py)`", here)
        assert len(files) == len({file for file, _ in places(here)}), here  # each with a name
        assert is_sentence(look), idea


def test_every_error_is_put_right_in_a_sentence():
    for says, right, _ in rows_of(ERRORS):
        assert is_sentence(right), says


# What the documents get wrong, shown


def test_a_query_fills_a_row_of_the_scores_and_a_key_a_column():
    q, k = torch.randn(T, K), torch.randn(T, K)
    before = q @ k.mT
    for vector, changed in [(q, lambda scores: scores), (k, lambda scores: scores.mT)]:
        vector[2] += 1
        differs = changed((q @ k.mT).isclose(before).logical_not())
        assert differs[2].all()
        assert not differs[[0, 1, 3, 4]].any()
        vector[2] -= 1


def test_dot_products_of_wider_vectors_vary_more_around_the_same_mean():
    for width in (16, 64, 256):
        products = (torch.randn(20_000, width) * torch.randn(20_000, width)).sum(-1)
        assert abs(products.mean()) < 4 * (width / 20_000) ** 0.5
        assert products.var() / width == pytest.approx(1, abs=0.05)


def test_one_long_sequence_trains_every_position_before_its_end():
    position = Learned(D, H, max_length=T)
    position.embed(torch.zeros(1, T - 1, D), Layout.full(1, T - 1)).sum().backward()
    assert position.table.weight.grad.ne(0).all(-1).tolist() == [True] * (T - 1) + [False]


def test_a_plain_mean_counts_padding_and_ours_does_not():
    x, layout = torch.randn(1, 3, D), Layout.padded([3], longest=T)
    padded = F.pad(x, (0, 0, 0, T - 3), value=9.0)
    torch.testing.assert_close(MeanPool(D)(padded, layout), x.mean(1))
    assert not torch.allclose(padded.mean(1), x.mean(1))


def test_attention_computed_one_pair_at_a_time_is_as_blind_to_order():
    layer, x, order = MultiHeadAttention(D, H), torch.randn(1, T, D), torch.tensor([3, 0, 4, 1, 2])
    layer.kernel = "loop"
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])
    convolution = nn.Conv1d(D, D, 3, padding=1)
    assert not torch.allclose(convolution(x.mT)[..., order], convolution(x[:, order].mT))


def test_attention_is_not_linear_in_its_input():
    layer, x = MultiHeadAttention(D, H), torch.randn(B, T, D)
    assert (layer(2 * x) - 2 * layer(x)).abs().max() > 1e-2


def test_with_its_own_value_a_query_would_get_back_what_it_had():
    weights, v = torch.randn(T, T).softmax(-1), torch.randn(T, K)
    torch.testing.assert_close(torch.einsum("ij,ik->ik", weights, v), v)


def test_padding_may_hold_anything_though_zero_times_nan_is_nan():
    layer, layout = MultiHeadAttention(D, H), Layout.padded([3], longest=T)
    layer.kernel = "plain"
    x = F.pad(torch.randn(1, 3, D), (0, 0, 0, T - 3))
    weights = layer.weights(x, layout=layout)
    assert weights[..., 3:].eq(0).all()
    for anything in (9.0, torch.nan):
        spoilt = x.masked_fill(~layout.real[..., None], anything)
        assert (weights[0, 0] @ spoilt[0]).isnan().any() == (anything != 9.0)
        torch.testing.assert_close(layer(spoilt, layout=layout)[:, :3], layer(x[:, :3]))


def test_every_head_looks_at_every_channel():
    layer, x = MultiHeadAttention(D, H, project=False), torch.randn(1, T, D, requires_grad=True)
    for head in layer(x).split(K, dim=-1):
        (push,) = torch.autograd.grad(head.square().sum(), x, retain_graph=True)
        assert push.ne(0).all()


def test_two_causal_layers_see_order_without_positions():
    first, second = MultiHeadAttention(D, H), MultiHeadAttention(D, H)
    x, swapped = torch.randn(1, T, D), torch.tensor([1, 0, 2, 3, 4])
    last = [first(y, mask=causal)[:, -1] for y in (x, x[:, swapped])]
    torch.testing.assert_close(*last)
    last = [second(first(y, mask=causal), mask=causal)[:, -1] for y in (x, x[:, swapped])]
    assert (last[0] - last[1]).abs().max() > 1e-4


def test_lengths_from_before_subsampling_hide_no_padding():
    before = Layout.padded([16, 40])
    _, after = Subsampling(K, D, factor=4)(torch.randn(2, 40, K), before)
    steps = torch.arange(after.longest)
    assert (steps < before.lengths[:, None]).all()
    assert not (steps < after.lengths[:, None]).all()
    assert after.lengths.tolist() == [4, 10]


def test_layer_norm_divides_by_the_standard_deviation():
    x = 3 * torch.randn(B, T, D)
    z = (x - x.mean(-1, keepdim=True)) / x.std(-1, correction=0, keepdim=True)
    torch.testing.assert_close(LayerNorm(D)(x), z, atol=1e-4, rtol=1e-4)


def test_group_and_instance_norms_look_along_the_sequence():
    x = torch.randn(1, D, T, requires_grad=True)  # channels first, as they want it
    ours = LayerNorm(D)
    group, instance = nn.GroupNorm(H, D), nn.InstanceNorm1d(D)
    for answer, leaks in [(group(x), True), (instance(x), True), (ours(x.mT).mT, False)]:
        (push,) = torch.autograd.grad(answer[..., 0].pow(3).sum(), x)
        assert push[..., 1:].ne(0).any() == leaks


@pytest.mark.usefixtures("half_on_cpu")
def test_a_score_of_minus_a_billion_does_not_fit_half_precision():
    scores, hidden = torch.zeros(T, dtype=torch.half), torch.ones(T, dtype=torch.bool)
    with pytest.raises(RuntimeError, match="without overflow"):
        scores.masked_fill(hidden, -1e9)
    q = torch.randn(B, H, T, K, dtype=torch.half)
    weights = attention_weights(q, q, describe(q, q, mask=causal))
    assert weights.triu(1).eq(0).all()


def test_a_mask_with_one_axis_too_few_takes_rows_for_heads():
    may_see = torch.arange(T) < torch.tensor([2, 3, 5])[:, None]  # three rows, and three heads
    wrong, right = (
        torch.zeros(3, 3, T, T).masked_fill(~mask, -1e4)
        for mask in (may_see.unsqueeze(1), may_see.unsqueeze(1).unsqueeze(1))
    )
    assert wrong[0].equal(wrong[1])  # all rows alike
    assert wrong[:, 0].equal(wrong[:, 0, :1].expand_as(wrong[:, 0]))
    assert right[:, 0].equal(right[:, 1])
    assert not right[0].equal(right[1])


def test_reshape_needs_no_contiguous_but_the_transpose():
    x = torch.randn(B, H, T, K)
    right = x.transpose(1, 2).contiguous().view(B, T, D)
    assert x.transpose(1, 2).reshape(B, T, D).equal(right)
    assert not x.reshape(B, T, D).equal(right)
    with pytest.raises(RuntimeError, match="view"):
        x.transpose(1, 2).view(B, T, D)


# The Chinese README


def fenced(text):
    return re.findall(r"^```.*?^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_the_code_in_the_chinese_readme_is_that_of_the_english_one():
    assert fenced(CHINESE) == fenced(README)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^    ((?:\$ )?(?:make|git|head|\S*glassformer) .*?)(?= {2,}#|$)",  # commands
        r"^    ([^#\n]+)$",  # what they print
        r"(`[^`]+`)[:：]",  # the results
        r"^(#+) ",  # the sections
        r"(?:\]\(|src=\")([^\s)\"]+)",  # links and pictures
    ],
)
def test_the_chinese_readme_names_what_the_english_one_names(pattern):
    named = re.findall(pattern, CHINESE, flags=re.MULTILINE)
    assert named
    english = re.findall(pattern, README, flags=re.MULTILINE)
    # Pages and pictures in Chinese have names of their own, and Chinese headings.
    same, as_there = (
        [re.sub(r"\.zh(?=\.)|(?<=md)#.*", "", name) for name in names] for names in (named, english)
    )
    assert same == as_there
