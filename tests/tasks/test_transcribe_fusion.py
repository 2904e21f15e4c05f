"""transcribe with a language model: what is added to the scores, and how its weight is chosen."""

from dataclasses import replace
from itertools import groupby, product

import pytest
import torch
from small_jobs import everything, job_of, taught
from small_recordings import SETTINGS, record

from glassformer.config.values import merge_values
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode.ctc import ctc_scores
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.tasks import JOBS
from glassformer.tasks.transcribe.answers import Transcripts
from glassformer.tasks.transcribe.choices import Choice
from glassformer.tasks.transcribe.language_model import CHOSEN, NGRAMS, WEIGHTS, choose_weights
from glassformer.tasks.transcribe.listened import listened
from glassformer.tasks.transcribe.rescoring import attention_scores
from glassformer.tasks.transcribe.sounds import BLANK

TEXTS = ("ad", "bead", "ace bad", "abba")


def task_of(folder, valid=0, **settings):
    rows = record(folder / "clips", TEXTS)
    for row in rows[:valid]:
        row["split"] = "valid"
    return job_of("transcribe", folder / "run", rows, **merge_values(SETTINGS, settings))


def spelled_out(fusion, text):
    """The log-probability of a text and its end, one token after another."""
    total = 0.0
    for size, token in enumerate((*text, Tokenizer.end)):
        scores = fusion.model(torch.tensor([text], dtype=torch.long), torch.tensor([size]))
        total += float(scores[0, token])
    return total


@torch.no_grad()
def test_a_joint_score_is_the_sum_over_all_paths_and_over_each_next_token(tmp_path):
    task = task_of(tmp_path, task={"lm": 0.4})
    torch.manual_seed(2)
    model, sound = task.model().eval(), torch.randn(13, task.bins)  # 4 vectors
    layout = Layout.full(1, len(sound))
    [found] = task.searcher.write(model, [sound.numpy()])
    frames = model(sound[None], source=layout).frames[0].log_softmax(-1)
    paths = list(product(range(frames.shape[1]), repeat=len(frames)))
    scores = frames[range(len(frames)), torch.tensor(paths)].sum(1).tolist()
    by_text = {}
    for path, score in zip(paths, scores, strict=True):
        text = tuple(token for token, _ in groupby(path) if token != BLANK)
        by_text.setdefault(text, []).append(score)
    compared = [one for one in found.choices if one.tokens]
    assert compared
    for choice in compared:
        by_ctc = float(torch.tensor(by_text.get(choice.tokens, [-torch.inf])).logsumexp(0))
        by_attention = 0.0
        for size, token in enumerate((*choice.tokens, Tokenizer.end)):
            before = torch.tensor([[Tokenizer.start, *choice.tokens[:size]]])
            target = Layout.full(1, size + 1)
            written = model(sound[None], before, source=layout, target=target).written
            by_attention += float(written[0, -1].log_softmax(-1)[token])
        written_out = 0.3 * by_ctc + 0.7 * by_attention
        assert choice.score(0.3) == pytest.approx(written_out, abs=1e-3)


@pytest.mark.parametrize("search", ["ctc", "attention", "joint"])
def test_the_best_text_has_the_best_written_out_sum(tmp_path, search):
    task = task_of(tmp_path, task={"lm": 0.7, "search": search})
    model, batch, fusion = taught(task, 8), everything(task), task.searcher.fusion
    found = task.searcher.search_batch(model, batch.features, batch.layout, batch.vectors)
    sounds = listened(model, batch.features, batch.layout, batch.vectors)
    log_probs = sounds.frames.log_softmax(-1)
    texts = [[choice.tokens for choice in one.choices] for one in found]
    by_ctc = ctc_scores(log_probs, batch.vectors, texts, blank=BLANK)
    by_attention = attention_scores(sounds, texts)
    shares = {"ctc": (1.0, 0.0), "attention": (0.0, 1.0), "joint": (0.3, 0.7)}[search]
    for one, *scores in zip(found, by_ctc, by_attention, strict=True):
        totals = []
        for choice, *both in zip(one.choices, *scores, strict=True):
            heard_score = sum(share * x for share, x in zip(shares, both, strict=True) if share)
            if search != "ctc":  # whose beam may have lost some paths
                assert choice.score(shares[0]) == pytest.approx(heard_score, rel=1e-3, abs=1e-3)
            written = spelled_out(fusion, choice.tokens)
            assert choice.language == pytest.approx(written, abs=1e-3)
            length = len(choice.tokens) + 1 if search == "attention" else 1
            totals.append((choice.score(shares[0]) + 0.7 * written) / length)
        assert len(totals) > 1
        best = one.choices[max(range(len(totals)), key=totals.__getitem__)]
        assert one.tokens == best.tokens
        assert one.score == best.score(shares[0])


def tried(*choices):
    """A row for which every weight found the same."""
    return [list(choices)] * len(WEIGHTS)


def test_the_weights_with_the_fewest_errors_are_stored_and_used(tmp_path):
    task = task_of(tmp_path, valid=2)
    assert (tmp_path / "run" / NGRAMS).exists()
    assert (task.searcher.weight, task.searcher.fusion.weight) == (0.3, 0.3)  # until chosen
    reporter = JOBS["transcribe"].reporter(task)
    assert reporter.calibrates
    wrong = Choice(tokens=(5,), ctc=-9.0, attention=-1.0, language=-7.0)
    right = Choice(tokens=(6,), ctc=-6.0, attention=-5.0, language=-6.0)
    choices = [tried(("a", wrong), ("b", right)), tried(("c", right))]
    reporter.calibrate(Transcripts(["a", "c"], ["b", "c"], "words", choices))
    found = read_json(tmp_path / "run" / CHOSEN)
    assert found == {"share": 0.5, "weight": 0.7, "errors": 0, "errors_before": 1}
    assert (task.searcher.weight, task.searcher.fusion.weight) == (0.5, 0.7)
    again = JOBS["transcribe"].task(task.config, task.folder, None)
    assert (again.searcher.weight, again.searcher.fusion.weight) == (0.5, 0.7)
    for weight in (0.0, 0.4):  # given by hand, it leaves the share as it is
        config = replace(task.config, task=replace(task.settings, lm=weight))
        assert JOBS["transcribe"].task(config, task.folder, None).searcher.weight == 0.3
    [_, note] = reporter.notes(Transcripts(["a"], ["a"], "words"))
    assert note == (
        "chosen on the validation rows: weight 0.7 for the n-gram model of the transcripts, share "
        "0.5 for CTC; 0 errors there, 1 before"
    )
    reporter.calibrate(Transcripts(["a"], ["a"], "words", [[]]))  # nothing to choose from
    assert read_json(tmp_path / "run" / CHOSEN) == found


def test_each_weight_is_scored_by_what_its_own_search_found(tmp_path):
    task = task_of(tmp_path, valid=2)
    wrong, right = (("a", Choice(tokens=(5,), ctc=-1.0)), ("b", Choice(tokens=(6,), ctc=-2.0)))
    row = [[wrong], [wrong], [right], [wrong], [wrong]]
    answers = Transcripts(["a"], ["b"], "words", [row])
    choose_weights(answers, task.folder, 0.3, joint=True)
    assert read_json(task.folder / CHOSEN) == {
        "share": 0.3,
        "weight": WEIGHTS[2],
        "errors": 0,
        "errors_before": 1,
    }


def test_rows_are_searched_with_every_weight_until_one_is_chosen(tmp_path):
    task = task_of(tmp_path, valid=2)
    model, batch = task.model().eval(), everything(task, "valid")
    found = task.answers(model, [batch])
    assert [len(row) for row in found.choices] == [len(WEIGHTS)] * 2
    for row in found.choices:
        assert all(text == task.tokenizer.decode(list(c.tokens)).strip() for text, c in row[0])
    choose_weights(found, task.folder, 0.3, joint=True)
    again = JOBS["transcribe"].task(task.config, task.folder, task.folder / "data")
    assert [row for row in again.answers(model, [batch]).choices if row] == []


def test_of_equal_weights_the_settings_are_kept_and_no_language_model(tmp_path):
    task = task_of(tmp_path, valid=2)
    choice = Choice(tokens=(5,), ctc=-1.0, language=-9.0)
    answers = Transcripts(["a"], ["b"], "words", [tried(("a", choice))])
    choose_weights(answers, task.folder, 0.4, joint=True)
    again = JOBS["transcribe"].task(task.config, task.folder, None)
    assert again.searcher.fusion is None
    assert again.searcher.weight == 0.4


def test_a_search_by_ctc_alone_keeps_its_share(tmp_path):
    task = task_of(tmp_path, valid=2, task={"ctc_weight": 1.0})
    wrong = Choice(tokens=(5,), ctc=-1.0, attention=-9.0, language=-9.0)
    right = Choice(tokens=(6,), ctc=-2.0, attention=-1.0, language=-8.0)
    choices = [tried(("a", wrong), ("b", right))]
    JOBS["transcribe"].reporter(task).calibrate(Transcripts(["a"], ["b"], "words", choices))
    assert (task.searcher.share, task.searcher.fusion) == (1.0, None)  # it would take over 1


def test_there_is_none_without_rows_to_choose_by_nor_for_greedy_searches(tmp_path):
    for name, settings in (("a", {}), ("b", {"decode": {"method": "greedy"}}), ("c", {"lm": 0.0})):
        task = task_of(tmp_path / name, valid=0 if name == "a" else 2, task=settings)
        assert task.searcher.fusion is None
        assert not (tmp_path / name / "run" / NGRAMS).exists()
        assert not JOBS["transcribe"].reporter(task).calibrates
    with pytest.raises(GlassformerError, match=r"task.lm needs task.decode.method = beam"):
        task_of(tmp_path / "d", task={"lm": 0.5, "decode": {"method": "greedy"}})
    with pytest.raises(GlassformerError, match=r"task.lm must lie in \[0, 10\], got -1"):
        task_of(tmp_path / "e", task={"lm": -1.0})


def test_a_run_without_a_language_model_searches_as_before(tmp_path):
    task = task_of(tmp_path, valid=2)
    (tmp_path / "run" / NGRAMS).unlink()
    write_json({"weight": 0.5}, tmp_path / "run" / CHOSEN)
    again = JOBS["transcribe"].task(task.config, task.folder, None)
    assert again.searcher == replace(task.searcher, tokenizer=again.tokenizer, fusion=None)
