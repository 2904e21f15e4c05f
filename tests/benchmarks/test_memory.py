"""Peak memory: as much as is known to be held at once, and None where nobody can tell."""

import pytest
import torch

from glassformer.benchmarks import layers
from glassformer.benchmarks.memory import peak_memory
from glassformer.training import memory

CPU = torch.device("cpu")
MB = 2**20


def block(megabytes):
    return torch.ones(megabytes * MB // 4)


def peak_here(work):
    peak = peak_memory(work, CPU)
    if peak is None:
        pytest.skip("this system does not tell")
    return peak


def test_a_known_block_is_seen():
    assert peak_here(lambda: block(64)) == pytest.approx(64 * MB, abs=2 * MB)


def test_what_is_held_at_once_adds_up():
    assert peak_here(lambda: (block(48), block(24))) == pytest.approx(72 * MB, abs=2 * MB)


def test_what_is_given_back_in_between_does_not():
    def work():
        block(48)
        block(24)

    assert peak_here(work) == pytest.approx(48 * MB, abs=2 * MB)


def test_earlier_work_does_not_hide_later_work():
    for _ in range(3):
        block(64)
        [block(1) for _ in range(24)]
    assert peak_here(lambda: [block(1) for _ in range(16)]) == pytest.approx(16 * MB, abs=2 * MB)


def test_no_work_takes_almost_nothing():
    assert peak_here(list) < MB


def test_an_error_in_the_work_is_not_hidden():
    with pytest.raises(AttributeError):
        peak_here(lambda: CPU.missing)


def test_where_the_mark_may_not_be_set_there_is_no_answer(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "PROCESS", tmp_path / "missing")
    assert peak_memory(list, CPU) is None


def test_where_the_system_does_not_tell_there_is_no_answer(monkeypatch, tmp_path):
    (tmp_path / "status").write_text("Name:\tpython\n")
    (tmp_path / "clear_refs").write_text("")
    monkeypatch.setattr(memory, "PROCESS", tmp_path)
    assert peak_memory(list, CPU) is None


def test_weights_laid_out_grow_faster_than_fused_attention(monkeypatch):
    monkeypatch.setattr(layers, "GROWTH_LENGTHS", (512, 1024))
    monkeypatch.setattr(layers, "SIZES", ((64, 4),))
    fused, *_, plain = (layers.measure_growth(what, CPU) for what in layers.growths())
    if None in (*fused.memory, *plain.memory):
        pytest.skip("this system does not tell")
    assert plain.exponent > 1.6
    assert fused.exponent < 1.4  # pages of memory are coarse at these lengths
    assert plain.memory[-1] > 5 * fused.memory[-1]


@pytest.mark.cuda
def test_a_known_block_is_seen_on_a_gpu():
    device = torch.device("cuda")
    peak = peak_memory(lambda: torch.ones(64 * MB, dtype=torch.uint8, device=device), device)
    assert peak == 64 * MB
