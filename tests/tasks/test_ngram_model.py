"""The n-gram language model: Kneser-Ney as it is written down, for any prefixes at once."""

from collections import Counter

import numpy as np
import pytest
import torch

from glassformer.tasks.shared.ngram_model import NgramModel

START, END, SIZE = 0, 1, 7
TEXTS = [(2, 3, 4, 2, 3), (2, 3), (), (5, 2, 3, 4), (4, 4, 4, 2), (2, 3), (3, 2, 3, 5)]


def learned(order, texts=TEXTS):
    arrays = [np.array(text, dtype=np.int64) for text in texts]
    return NgramModel.learn(arrays, vocab_size=SIZE, order=order, ends=(START, END))


class WrittenOut:
    """The same by the definition, with dictionaries."""

    def __init__(self, order):
        self.order = order
        lines = [(START, *text, END) for text in TEXTS]
        grams = [
            line[at : at + k]
            for line in lines
            for k in range(1, order + 2)
            for at in range(len(line) - k + 1)
        ]
        raw = Counter(grams)
        self.counts = {}
        for gram in raw:
            if len(gram) > order or gram == (START,):
                continue
            before = len({one[0] for one in raw if one[1:] == gram})
            longest = len(gram) == order
            self.counts[gram] = raw[gram] if longest or gram[0] == START else before

    def __call__(self, token, context):
        children = {g: c for g, c in self.counts.items() if g[:-1] == context}
        lower = 1 / SIZE if not context else self(token, context[1:])
        if not children:
            return lower
        level = [c for g, c in self.counts.items() if len(g) == len(context) + 1]
        once, twice = level.count(1), level.count(2)
        discount = once / (once + 2 * twice) if once else 0.5
        total = sum(children.values())
        seen = max(children.get((*context, token), 0) - discount, 0) / total
        return seen + discount * len(children) / total * lower


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_it_is_interpolated_kneser_ney(order):
    model, right = learned(order), WrittenOut(order)
    prefixes = [(), (2,), (2, 3), (5, 2, 3, 4), (4, 4), (6, 6), (6, 2, 3), (3, 5)]
    tokens = torch.full((len(prefixes), 6), 5)  # whatever follows a prefix is ignored
    for row, prefix in enumerate(prefixes):
        tokens[row, : len(prefix)] = torch.tensor(prefix, dtype=torch.long)
    found = model(tokens, torch.tensor([len(prefix) for prefix in prefixes])).exp()
    assert found.sum(1).tolist() == pytest.approx([1.0] * len(prefixes), abs=1e-5)
    for row, prefix in enumerate(prefixes):
        context = ((START, *prefix)[-(order - 1) :]) if order > 1 else ()
        expected = [right(token, context) for token in range(SIZE)]
        assert found[row].tolist() == pytest.approx(expected, abs=1e-5)
    labels = torch.arange(len(prefixes)) % SIZE
    alone = model.likelihoods(tokens, torch.tensor(list(map(len, prefixes))), labels).exp()
    torch.testing.assert_close(alone, found[range(len(prefixes)), labels])


def test_the_longest_order_is_that_of_the_longest_text():
    model = learned(9, [(2,), ()])
    assert model.order == 3
    found = model(torch.zeros(2, 0, dtype=torch.long), torch.zeros(2, dtype=torch.long))
    assert bool(found.isfinite().all())
    assert model(torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, dtype=torch.long)).shape == (
        0,
        SIZE,
    )


def test_it_is_stored_in_one_file(tmp_path):
    model = learned(3)
    model.save(tmp_path / "ngrams.safetensors")
    again = NgramModel.load(tmp_path / "ngrams.safetensors")
    tokens, sizes = torch.tensor([[2, 3, 4], [6, 5, 2]]), torch.tensor([3, 1])
    assert again(tokens, sizes).equal(model(tokens, sizes))
    (tmp_path / "ngrams.safetensors").write_bytes(b"nothing")
    with pytest.raises(ValueError, match=r"ngrams\.safetensors: "):
        NgramModel.load(tmp_path / "ngrams.safetensors")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_model_follows_its_prefixes_to_a_gpu_and_back():
    model, texts = learned(3), torch.tensor([[4, 5], [5, 0]])
    sizes = torch.tensor([2, 1])
    expected = model(texts, sizes)
    assert torch.allclose(model(texts.cuda(), sizes.cuda()).cpu(), expected)
    assert torch.equal(model(texts, sizes), expected)
