"""Whole models answer as Hugging Face's do, given the same weights and the same inputs."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hugging_face import (
    BINS,
    CHANNELS,
    FRAMES,
    IMAGE,
    V,
    bert,
    bloom,
    gpt2,
    llama,
    marian,
    t5,
    vit,
    whisper,
)

from glassformer.core.layout import Layout

B, S, T, STEPS = 2, 31, 29, 7
FULL, PADDED = (S, S), (19, S)
LANGUAGE_MODELS = {"gpt2": gpt2, "llama": llama, "bloom": bloom}

each_padding = pytest.mark.parametrize("lengths", [FULL, PADDED], ids=["full", "padded"])


def layout_of(lengths, longest=S):
    """Full rows say so, as they do in the models."""
    full = min(lengths) == longest
    return Layout.full(B, longest) if full else Layout.padded(lengths, longest=longest)


def seen(layout):
    """The mask as theirs take it: one for a token, zero for padding."""
    return layout.real.expand(layout.rows, -1).long()


def tokens(length=S):
    """Of any kind, in the padding too: it must not matter what lies there."""
    return torch.randint(V, (B, length))


def assert_same(ours, theirs):
    """The same, to the precision of fp32 at their size."""
    size = theirs.abs().max().item()
    assert size > 0.1  # two silences would agree on anything
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * size)


# Each returns our model, a call of it, and what theirs answers; both at real positions only.


def reading_text(lengths):
    ours, theirs = bert()
    ids, kinds, layout = tokens(), torch.randint(2, (B, S)), layout_of(lengths)
    expected = theirs(ids, attention_mask=seen(layout), token_type_ids=kinds).last_hidden_state
    real = seen(layout).bool()
    samples = torch.stack([ids, kinds], dim=-1)
    return ours, lambda: ours(samples, layout=layout)[real], expected[real]


def continuing(make, lengths):
    ours, theirs = make()
    ids, layout = tokens(), layout_of(lengths)
    expected = theirs(ids, attention_mask=seen(layout)).logits
    real = seen(layout).bool()
    return ours, lambda: ours(ids, layout=layout)[real], expected[real]


def translating(make, lengths):
    ours, theirs = make()
    read, written = tokens(), tokens(T)
    source = layout_of(lengths)
    target = layout_of((T, T) if lengths == FULL else (T, 17), T)
    expected = theirs(
        input_ids=read,
        attention_mask=seen(source),
        decoder_input_ids=written,
        decoder_attention_mask=seen(target),
    ).logits
    real = seen(target).bool()
    return ours, lambda: ours(read, written, source=source, target=target)[real], expected[real]


def listening(lengths):
    ours, theirs = whisper()
    mel = torch.randn(B, BINS, 2 * FRAMES)
    x = F.gelu(theirs.conv2(F.gelu(theirs.conv1(mel)))).mT  # (B, frames, D)
    layout = layout_of(lengths, FRAMES)
    return ours, lambda: ours(x, layout=layout), theirs(mel).last_hidden_state


def looking(lengths):
    ours, theirs = vit()
    images = torch.randn(B, CHANNELS, *IMAGE)
    layout = Layout.full(B, 1)  # of the images: one size, so it says nothing
    return ours, lambda: ours(images, layout=layout), theirs(images).last_hidden_state


PAIRS = {
    "bert": reading_text,
    **{name: partial(continuing, make) for name, make in LANGUAGE_MODELS.items()},
    "t5": partial(translating, t5),
    "marian": partial(translating, marian),
    "whisper": listening,
    "vit": looking,
}
ALWAYS_FULL = ("whisper", "vit")  # sound is cut to 30 seconds, images to one size


@pytest.mark.parametrize("name", PAIRS)
@each_padding
@torch.no_grad()
def test_a_whole_model_answers_as_theirs_with_the_same_weights(name, lengths):
    if name in ALWAYS_FULL and lengths != FULL:
        pytest.skip("knows no padding")
    _, answer, expected = PAIRS[name](lengths)
    assert_same(answer(), expected)


@pytest.mark.parametrize("name", PAIRS)
@torch.no_grad()
def test_a_small_change_of_any_copied_weight_is_noticed(name):
    """Otherwise the comparison above would say nothing of that weight."""
    ours, answer, expected = PAIRS[name](FULL)
    for key, weight in ours.named_parameters():
        if key.endswith("to_k.bias"):  # adds the same to all scores of a query: softmax forgets it
            continue
        copied = weight.clone()
        weight.add_(0.01 * torch.randn_like(weight))
        with pytest.raises(AssertionError, match="not close"):
            assert_same(answer(), expected)
        weight.copy_(copied)
    assert_same(answer(), expected)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@each_padding
@torch.no_grad()
def test_a_language_model_goes_on_with_caches_as_theirs_does(name, lengths):
    ours, theirs = LANGUAGE_MODELS[name]()
    ids, layout = tokens(), layout_of(lengths)
    on_the_right = torch.stack(  # theirs goes on where a row ends, so it has its padding before
        [row.roll(S - length) for row, length in zip(ids, lengths, strict=True)]
    )
    expected = theirs.generate(
        on_the_right,
        attention_mask=seen(layout).flip(1),
        do_sample=False,
        max_new_tokens=STEPS,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    caches = ours.decoder.new_caches()
    scores = [ours(ids, layout=layout, caches=caches)[range(B), [n - 1 for n in lengths]]]
    for _ in range(STEPS - 1):
        best = scores[-1].argmax(dim=-1, keepdim=True)  # (B, 1)
        scores.append(ours(best, layout=Layout.full(B, 1), caches=caches)[:, 0])
    assert_same(torch.stack(scores), torch.stack(expected.logits))
    chosen = torch.stack(scores, dim=1).argmax(dim=-1)  # (B, STEPS)
    assert chosen.tolist() == expected.sequences[:, S:].tolist()
