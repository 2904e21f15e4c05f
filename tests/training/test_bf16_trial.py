"""bf16 on a CPU: taken after a child process has shown that it works and pays, never believed."""

import json
import sys

import pytest
import torch

from glassformer.config import MachineConfig
from glassformer.errors import GlassformerError
from glassformer.training import bf16_trial, bf16_work
from glassformer.training.bf16_trial import find_verdict, known_verdict, verdict_file
from glassformer.training.machine import choose_machine, training_machine

CPU = MachineConfig(device="cpu")
BY_HAND = MachineConfig(device="cpu", precision="bf16")


def answer(fp32=2.0, bf16=1.0, difference=0.01):
    return f"print({json.dumps({'fp32': fp32, 'bf16': bf16, 'difference': difference})!r})"


def dying_by(name):
    return f"import os, signal; os.kill(os.getpid(), signal.{name})"


SLOWER = answer(fp32=0.0101, bf16=0.0307)
DIES = dying_by("SIGILL")
FAILURES = {
    "dies": (DIES, "it was killed by SIGILL"),
    "crashes": (dying_by("SIGSEGV"), "it was killed by SIGSEGV"),
    "raises": (
        "raise RuntimeError('could not create a primitive')",
        "it failed with exit code 1: RuntimeError: could not create a primitive",
    ),
    "differs": (answer(difference=0.53), "its results differ from fp32 by 53.0%"),
    "is no number": (
        answer(difference=float("nan")),
        "its results differ from fp32 by nan%",
    ),
    "babbles": ("print('{}')", "its output cannot be read"),
    "is silent": ("", "its output cannot be read"),
    "hangs": ("import time; time.sleep(30)", "it timed out after 0.7 seconds"),
}


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Returns a way to put another program in the place of the trial's; counts its starts."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    work, starts = tmp_path / "work.py", tmp_path / "starts"

    def put(code):
        noted = f"print(end='x', file=open({str(starts)!r}, 'a'))\n"
        work.write_text(noted + code, encoding="utf-8")
        monkeypatch.setattr(bf16_trial, "WORK", work)
        return lambda: len(starts.read_text()) if starts.exists() else 0

    return put


def test_a_cpu_that_survives_agrees_and_is_faster_trains_in_bf16(plant):
    starts = plant(answer())
    assert training_machine(CPU).precision == torch.bfloat16
    assert choose_machine(BY_HAND).precision == torch.bfloat16
    fp32 = MachineConfig(device="cpu", precision="fp32")
    assert training_machine(fp32).precision == torch.float32
    assert starts() == 1


@pytest.mark.parametrize(
    ("bf16", "precision"), [(0.5, torch.bfloat16), (0.97, torch.float32), (3.1, torch.float32)]
)
def test_bf16_must_be_clearly_faster(bf16, precision, plant):
    plant(answer(fp32=1.0, bf16=bf16))
    assert training_machine(CPU).precision == precision


@pytest.mark.parametrize("code", [DIES, SLOWER], ids=["dies", "slower"])
def test_what_a_processor_says_of_itself_is_not_believed(code, plant):
    starts = plant(code)
    for _ in range(2):
        assert training_machine(CPU).precision == torch.float32
    assert starts() == 1


def test_a_processor_that_claims_no_tiles_is_not_tried(plant, monkeypatch):
    starts = plant(answer())
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert training_machine(CPU).precision == torch.float32
    assert starts() == 0


@pytest.mark.parametrize("way", FAILURES)
def test_asking_for_bf16_by_hand_where_it_fails_is_refused_in_words(way, plant, monkeypatch):
    code, finding = FAILURES[way]
    plant(code)
    if way == "hangs":
        monkeypatch.setattr(bf16_trial, "TIME_LIMIT", 0.7)
    with pytest.raises(GlassformerError) as refused:
        choose_machine(BY_HAND)
    assert str(refused.value) == (
        f"machine.precision=bf16: a trial of bf16 on this CPU failed, {finding}; use "
        f"machine.precision=fp32, or delete {verdict_file()} to repeat the trial"
    )
    assert training_machine(CPU).precision == torch.float32


def test_a_child_that_cannot_be_started_means_fp32(plant, monkeypatch):
    plant(answer())
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert training_machine(CPU).precision == torch.float32
    assert find_verdict().finding.startswith("it could not be started: ")


def test_slower_is_allowed_by_hand(plant):
    plant(SLOWER)
    assert choose_machine(BY_HAND).precision == torch.bfloat16
    assert find_verdict().finding == "it took 30.7 ms, fp32 10.1 ms"


def test_short_commands_use_a_verdict_and_do_not_pay_for_one(plant):
    starts = plant(answer())
    assert choose_machine(CPU).precision == torch.float32
    assert starts() == 0
    training_machine(CPU)
    assert choose_machine(CPU).precision == torch.bfloat16
    assert starts() == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE"),
        ("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16"),
        ("ATEN_CPU_CAPABILITY", "avx2"),
    ],
)
def test_a_verdict_holds_for_the_variables_it_was_made_under(name, value, plant, monkeypatch):
    monkeypatch.setenv(name, "before")
    starts = plant(answer())
    find_verdict()
    monkeypatch.setenv(name, value)
    assert known_verdict() is None
    find_verdict()
    assert starts() == 2


@pytest.mark.parametrize("what", ["torch", "processor", "kernel"])
def test_a_verdict_holds_for_one_machine(what, plant, monkeypatch):
    plant(answer())
    find_verdict()
    where = {
        "torch": ("torch.__version__", "9.9.9"),
        "processor": ("glassformer.training.bf16_trial._cpuinfo", lambda: {"model name": "Z80"}),
        "kernel": ("platform.release", lambda: "0.1"),
    }
    assert known_verdict() is not None
    monkeypatch.setattr(*where[what])
    assert known_verdict() is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace("true", '"yes"', 1),
        lambda text: text.replace('"works"', '"werks"'),
        lambda text: text.replace('"trial": ', '"trial": 9'),
        lambda text: "[" * 100_000,
        lambda text: "null",
        lambda text: "",
    ],
)
def test_a_damaged_verdict_is_no_verdict(damage, plant, without_shape_hook):
    starts = plant(answer())
    find_verdict()
    file = verdict_file()
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
    assert known_verdict() is None
    assert find_verdict() == known_verdict()
    assert starts() == 2


def test_where_nothing_can_be_kept_one_trial_a_process_is_enough(plant, tmp_path):
    starts = plant(answer())
    (tmp_path / "cache").write_text("no folder")
    for _ in range(2):
        assert training_machine(CPU).precision == torch.bfloat16
    assert starts() == 1


def test_all_processes_take_fp32_if_one_of_them_must(plant, monkeypatch):
    plant(answer())
    asked = []
    monkeypatch.setattr("glassformer.processes.any_of", lambda holds: asked.append(holds) or True)
    assert training_machine(CPU).precision == torch.float32
    assert asked == [False]


def test_the_same_work_in_one_precision_agrees_and_a_wrong_product_shows(monkeypatch):
    monkeypatch.setattr(bf16_work, "ROUNDS", 1)
    found = bf16_work.compare(torch.float32)
    assert found["difference"] == 0
    assert 0 < found["fp32"] < torch.inf
    assert 0 < found["bf16"] < torch.inf
    a, b = torch.randn(2, 3, 5)
    assert bf16_work.difference([a, b], [a, 1.1 * b]) == pytest.approx(1 / 11)
    assert bf16_work.difference([a, b], [a, b * torch.nan]) == torch.inf


def test_the_trial_itself_runs_here(verdict_on_bf16):
    """It may say what it likes of this processor, but in the words of a processor."""
    assert verdict_on_bf16.finding.startswith(
        ("it took ", "it was ", "its answers are ", "it ended")
    )
    assert "Traceback" not in verdict_on_bf16.finding
    assert "Error: " not in verdict_on_bf16.finding or "primitive" in verdict_on_bf16.finding
