"""`generate`: characters that no token stands for: their bytes, and what is said about them."""

import numpy as np
import pytest
import torch
from small_jobs import everything, job_of

from glassformer.tasks.generate.predictor import GeneratePredictor
from glassformer.tasks.generate.reporter import GenerateReporter
from glassformer.tasks.generate.unknown import TextSizes
from glassformer.tasks.shared.losses import IGNORED

SMALL = {"decoder": {"dim": 24, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}}}
KINDS = ("characters", "bytes", "bpe")
RHYMES = ["the cat sat on the mat\nand looked at the rat", "one is a fox in a box", "é 白日依山尽"]
FOREIGN = ["Москва слезам не верит, " * 200, "the cat sat 😀é", "Straße " * 50, "zzz", "天" * 2048]


def writer(folder, texts, held=(), kind="characters", **settings):
    """A job that learned the characters of some texts, with others to score."""
    rows = [{"text": text} for text in texts]
    rows += [{"text": text, "split": "valid"} for text in held]
    tokens = {"tokenizer": {"kind": kind, "vocabulary": 300}}
    return job_of("generate", folder, rows, **{"model": SMALL, "data": tokens} | settings)


@torch.no_grad()
def test_unknown_characters_have_the_bytes_of_the_text(tmp_path):
    job = writer(tmp_path, ["the cat sat on the mat"] * 3, FOREIGN)
    found = job.answers(job.model().eval(), [everything(job, "valid")])
    assert found.bytes.sum() == sum(len(text.encode()) for text in FOREIGN)
    sliding = job.sliding("valid")
    lone = sliding.stream.starts[1] + np.arange(15)
    assert sliding.bytes[lone].tolist() == [1] * 12 + [4, 2, 0]  # and the end


def test_the_bytes_are_those_of_the_text_as_it_is_read(tmp_path):
    kind = {"tokenizer": {"kind": "characters", "lowercase": True}}
    job = writer(tmp_path, ["the cat"], ["THE ȺPPLE"], data=kind)  # ⱥ has a byte more than Ⱥ
    assert job.sliding("valid").bytes.tolist() == [1, 1, 1, 1, 3, 1, 1, 1, 1, 0]


def test_texts_that_do_not_fit_their_tokens_leave_each_unknown_one_its_three_bytes(tmp_path):
    job = writer(tmp_path, ["the cat"], ["the é"])
    sizes = TextSizes(job.tokenizer, lambda documents: ["another text"])
    labels = np.array([*job.tokenizer.encode(["the é"])[0], job.tokenizer.end, IGNORED])
    assert sizes.of(labels, np.zeros(7, dtype=np.int64)).tolist() == [1, 1, 1, 1, 3, 0, 0]


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("learned", [RHYMES, ["the cat sat on the mat"] * 3])
def test_whatever_the_tokens_are_a_text_has_the_same_kilobytes(tmp_path, learned, ends):
    held = ["a" * 1022 + "白", "a" * 1023 + "é", "a" * 1024, "", "b", *FOREIGN]
    sizes = []
    for kind in KINDS:
        job = writer(tmp_path / kind, learned, held, kind=kind)
        job.continued[:] = not ends
        with torch.no_grad():
            sizes.append(job.answers(job.model().eval(), [everything(job, "valid")]).bytes)
    for other in sizes[1:]:
        assert len(other) == len(sizes[0])
        assert abs(other.cumsum() - sizes[0].cumsum()).max() <= 8  # a token that crosses a border


def last(predictor, model, prompt):
    *_, found = predictor.predict(model, [prompt])
    return found


def test_unknown_characters_of_a_prompt_are_noted(tmp_path):
    job = writer(tmp_path, RHYMES)
    model = job.model().eval()
    settings = ("decode.max_length=5", "decode.method=greedy")
    predictor = GeneratePredictor(job).configured(set=settings)
    assert last(predictor, model, "one").note == ""
    found = last(predictor, model, "Москва is")
    shown = "'М', 'о', 'с', 'к', 'в'"
    assert found.note == f"has 6 characters of 9 without a token of this model: {shown}"
    _, second = predictor.predict(model, ["one", "oñe" + "o" * 300])
    assert second.note == (
        "has 1 character of 303 without a token of this model: 'ñ'; it has 304 tokens, more than "
        "the 256 that were read in training"
    )


def test_unknown_characters_are_remarked_on_where_they_are_many(tmp_path):
    job = writer(tmp_path / "valid", ["the cat"] * 30, ["that cat é", "白日"])
    remark = (
        "25.0% of the characters of the valid split have no token of this model: 'é', '白', '日'"
    )
    assert remark in GenerateReporter(job).remarks()
    few = writer(tmp_path / "few", ["the cat"] * 30, ["the cat " * 20 + "é"])
    assert not any("no token" in one for one in GenerateReporter(few).remarks())
    spelt = writer(tmp_path / "bytes", ["the cat"] * 30, ["白日"], kind="bytes")
    assert not any("no token" in one for one in GenerateReporter(spelt).remarks())
