"""`glassformer bench generate`: all sides generate the same tokens, or nothing is timed."""

import json

import pytest
import torch

from glassformer.benchmarks.generation import loop_contests, works
from glassformer.benchmarks.generation.contest import Bench, Contest, Peer
from glassformer.benchmarks.generation.correctness import check
from glassformer.benchmarks.generation.llama import TINY
from glassformer.cli import main
from glassformer.errors import GlassformerError

CPU = torch.device("cpu")
LINE = ["bench", "generate", "--small", "--device", "cpu", "--threads", "1", "--rounds", "1"]
GPT_FAST = "nothing is measured against gpt-fast; give --peers a folder with gptfast.py"


def test_a_side_is_checked_token_by_token_before_it_is_timed():
    pytest.importorskip("transformers")
    contest = loop_contests.contest(TINY, 3, Bench(CPU, None, 1, small=True), torch.float32, {})
    ours = [list(row) for row in contest.ours()()]
    assert contest.check({"ours": ours, "theirs": ours}) == ["3 of 3 rows of ours and theirs agree"]
    wrong = [*ours[:2], [*ours[2][:-1], (ours[2][-1] + 1) % TINY.vocabulary]]
    with pytest.raises(GlassformerError, match=r"^theirs generates tokens .* nothing is timed$"):
        contest.check({"ours": ours, "theirs": wrong})


def test_a_tie_is_not_an_error_but_rows_that_differ_are_counted():
    class Reference:
        def __call__(self, tokens):
            scores = torch.arange(7.0).expand(*tokens.shape, 7).clone()
            scores[..., 5] = 5.9
            self.logits = scores
            return self

    found = check({"a": [[6, 6]], "b": [[6, 5]]}, Reference(), torch.tensor([[1, 2, 3]]))
    assert found == ["0 of 1 rows of a and b agree"]


def test_speed_is_tokens_over_seconds_and_the_bar_decides(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(works.time, "perf_counter", lambda: now[0])

    def taking(seconds):
        def generate():
            now[0] += seconds
            return [[1, 2]]

        return lambda: generate

    contest = Contest(
        case="case",
        tokens=12,
        ours=taking(2.0),
        peers={
            "slow": Peer(taking(6.0), 2.9, 5.0),
            "fast": Peer(taking(1.0), 2.9, 5.0),
            "stated": Peer(taking(2.0), None, None),
        },
        check=lambda outputs: [f"{len(outputs)} sides"],
    )
    slow, fast, stated = works.held("work", contest, Bench(CPU, None, 3))
    assert (slow.speed.ours, slow.speed.theirs, slow.speed.ratio) == (6.0, 2.0, 3.0)
    assert (slow.passed, fast.passed, stated.passed) == (True, False, None)
    assert (slow.start, slow.their_start, slow.remarks) == (2.0, 6.0, ["4 sides"])


def test_the_command_prints_every_contest_of_the_miniature(capsys):
    pytest.importorskip("transformers")
    assert main([*LINE, "--json", "--only", "one", "--only", "small"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["work"], one["case"], one["theirs"]) for one in found["generation"]] == [
        ("one", "1 x 5 tokens", "Hugging Face"),
        ("small", "1 x 5 tokens", "Hugging Face"),
        ("small", "16 x 5 tokens", "Hugging Face"),
    ]
    assert f"one: {GPT_FAST}" in found["notes"]


@pytest.mark.parametrize(("kind", "work"), [("generate", "one"), ("train", "pairs")])
def test_what_belongs_on_another_device_is_left_out_with_a_line(capsys, kind, work):
    assert main(["bench", kind, "--device", "cpu", "--only", work]) == 0
    assert f"{work}: left out, it is measured on cuda" in capsys.readouterr().out


def test_unknown_work_is_refused(capsys):
    assert main([*LINE, "--only", "mayn"]) == 1
    assert "did you mean 'many'" in capsys.readouterr().err
