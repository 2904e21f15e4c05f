"""`glassformer bench attention`: what it measures, what it prints, what it refuses."""

import json
import sys

import pytest
import torch

from glassformer.benchmarks import attention, complexity, layers, peers, report
from glassformer.benchmarks.attention import SDPA, ladder
from glassformer.cli import main
from glassformer.cli.bench import attempt
from glassformer.core.kernels import KERNELS
from glassformer.errors import GlassformerError, install

CPU = torch.device("cpu")
TINY = ["bench", "attention", "--device", "cpu", "--lengths", "8,16", "--rounds", "2"]
QUICK = ["bench", "attention", "--device", "cpu", "--lengths", "17", "--rounds", "1"]


@pytest.fixture(autouse=True)
def _tiny(monkeypatch, without_shape_hook):
    """Small layers, and no x-transformers unless a test asks for it. Flex wants no shape checks."""
    for name, value in {"HEADS": 2, "WIDTH": 4, "DIM": 8}.items():
        monkeypatch.setattr(attention, name, value)
    for name, value in {"HEADS": 2, "DIM": 8, "SUMMARY": 4, "WINDOW": 3}.items():
        monkeypatch.setattr(complexity, name, value)
    small = {"SIZES": ((8, 2),), "LENGTHS": (5,), "MEDIANS": {3: 7}, "GROWTH_LENGTHS": (16, 64)}
    for name, value in small.items():
        monkeypatch.setattr(layers, name, value)
    monkeypatch.setitem(sys.modules, "x_transformers", None)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def numbers_of(result):
    return [value for name, value in result["time"].items() if name != "rounds"]


# What it finds


def test_the_ladder_and_the_costs_come_as_json(capsys):
    assert main([*TINY, "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert list(found) == ["machine", "notes", "ladder", "complexity", "exponents", "growth"]
    assert found["machine"]["threads"] == 1
    assert (found["machine"]["type"], found["machine"]["dtype"]) == ("cpu", "float32")

    rungs = {(one["length"], one["case"], one["ours"], one["theirs"]) for one in found["ladder"]}
    for length in (8, 16):
        assert (length, "forward", "MultiHeadAttention", "nn.MultiheadAttention") in rungs
        assert (length, "training", SDPA, SDPA) in rungs
        assert all((length, "forward", name, SDPA) in rungs for name in KERNELS)
    kinds = {(one["length"], one["ours"]) for one in found["complexity"]}
    assert kinds == {(length, name) for length in (8, 16) for name in complexity.LAYERS}

    results = found["ladder"] + found["complexity"]
    assert all(number > 0 for one in results for number in numbers_of(one))
    assert all(one["time"]["low"] <= one["time"]["ratio"] <= one["time"]["high"] for one in results)
    memory = [one[name] for one in results for name in ("memory", "their_memory")]
    assert all(amount is None or amount >= 0 for amount in memory)
    assert found["exponents"].keys() == complexity.LAYERS.keys()
    assert all(type(grown["time"]) is float for grown in found["exponents"].values())


def test_what_is_left_out_is_said(capsys):
    assert main([*QUICK, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert peers.NO_X in found["notes"]
    assert "flex, training: skipped, it cannot compute gradients on cpu" in found["notes"]
    assert any(note.startswith("loop: skipped beyond length 16") for note in found["notes"])
    assert any(
        note.startswith("window: on a CPU the mask is materialised") for note in found["notes"]
    )
    assert "loop" not in {one["ours"] for one in found["ladder"]}
    assert not any("x-transformers" in one["theirs"] for one in found["ladder"])


@pytest.mark.parametrize("load", [0.0, 97.0])
def test_a_busy_machine_is_said(load, monkeypatch):
    monkeypatch.setattr(report.os, "getloadavg", lambda: (load, load, load))
    assert ["the machine was busy" in note for note in report.busy()] == [True] * (load > 1)


def test_the_bars_measure_layers_packing_and_growth(capsys):
    assert main([*QUICK, "--bars", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {(one["case"], one["theirs"]) for one in found["layers"]} == {
        (f"{what}, dim 8, dropout {share}", "torch.nn")
        for what in ("attention", "post-norm layer", "pre-norm layer")
        for share in ("0", "0.1")
    }
    (packing,) = found["packing"]
    assert (packing["ours"], packing["theirs"]) == ("packed", "padded")
    assert packing["case"].startswith("7 rows, median 3, ")
    assert all(n > 0 for one in found["layers"] + [packing] for n in numbers_of(one))
    assert [one["case"] for one in found["growth"]] == [
        "no mask",
        "causal",
        "padding",
        "no mask",
        "no mask",
    ]


def test_people_get_tables_with_every_number_and_every_note(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main([*QUICK, "--bars"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "…" not in out
    for words in ("The ladder", "Cost against length", "Growth over", "Layers against", "Peak mem"):
        assert words in out
    assert f"Note: {peers.NO_X}" in out


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "packed"])
def test_a_rung_computes_what_it_is_measured_against(name):
    q, k, v, call = attention.inputs(name, 3, 5, "forward", CPU)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(attention.attend(q, k, v, call, kernel=name), expected)


def test_our_layers_have_as_many_weights_as_their_peers():
    def weights(layer):
        return sum(weight.numel() for weight in layer[0].parameters())

    ours = layers.our_attention(24, 3, 0.0, True)
    assert weights(ours) == weights(peers.layer_of("torch.nn", 24, 3, None, 0.0))
    for order in ("pre", "post"):
        ours = layers.our_layer(24, 3, order, 0.1, True)
        assert weights(ours) == weights(peers.layer_of("torch.nn", 24, 3, order, 0.1))


def test_x_transformers_is_measured_where_it_is_installed(monkeypatch):
    monkeypatch.delitem(sys.modules, "x_transformers")
    pytest.importorskip("x_transformers")
    pairs, notes = ladder([8], CPU)
    assert peers.NO_X not in notes
    against = [pair for pair in pairs if pair.theirs == "x-transformers"]
    against += [pair for pair in layers.layers(CPU) if pair.theirs == "x-transformers"]
    assert len(against) == 2 + 6
    for pair in against:
        ours, theirs = pair.make()
        assert ours() is not None
        assert theirs() is not None


def test_lengths_are_those_of_a_log_normal():
    lengths = layers.ragged(100, 1001)
    assert sorted(lengths)[500] == 100
    assert max(lengths) > 500
    assert min(lengths) >= 1


# The chart


def test_the_chart_is_a_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    assert (
        main(
            [
                *TINY[:4],
                "--lengths",
                "18,19",
                "--rounds",
                "1",
                "--json",
                "--chart",
                str(tmp_path / "cost.png"),
            ]
        )
        == 0
    )
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    json.loads(capsys.readouterr().out)


def test_without_matplotlib_a_chart_is_refused_before_anything_is_measured(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main([*QUICK, "--chart", str(tmp_path / "cost.png")]) == 1
    told = f"a picture needs matplotlib, which is not installed; {install('pictures')}"
    assert capsys.readouterr() == ("", f"glassformer: {told}\n")


# What is refused

REFUSED = {
    ("--lengths", "8,x"): (
        "lengths must be positive integers separated by commas, got '8,x'; write --lengths 128,256"
    ),
    ("--lengths", "8,0"): (
        "lengths must be positive integers separated by commas, got '8,0'; write --lengths 128,256"
    ),
    ("--lengths", ""): (
        "lengths must be positive integers separated by commas, got ''; write --lengths 128,256"
    ),
    (
        "--device",
        "gpu",
    ): "unknown device 'gpu'; did you mean 'cpu'? The choices are auto, cpu, cuda",
    ("--chart", "cost.gif"): "a picture must end in .png, .svg, .pdf, got 'cost.gif'; rename it",
    ("--chart", "missing/cost.png"): "missing: no such folder for the picture; create it first",
}


@pytest.mark.parametrize("option", REFUSED, ids=" ".join)
def test_what_cannot_be_measured_is_refused_in_one_line(option, capsys):
    assert main([*QUICK, *option]) == 1
    assert capsys.readouterr() == ("", f"glassformer: {REFUSED[option]}\n")


def test_a_gpu_that_is_not_there_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main([*QUICK, "--device", "cuda"]) == 1
    told = "no CUDA device found; use --device cpu or auto"
    assert capsys.readouterr() == ("", f"glassformer: {told}\n")


def test_what_does_not_fit_the_memory_is_named():
    def job():
        raise torch.OutOfMemoryError

    with pytest.raises(GlassformerError, match="plain, length 9: does not fit in device memory"):
        attempt("plain, length 9", job, "use less")
