"""Several runs at once: how many, in which environment, what fails, and how they stop."""

import os
import signal
import sys
from pathlib import Path
from threading import Thread

import pytest
import torch

from glassformer.errors import GlassformerError
from glassformer.runs import parallel, worker
from glassformer.runs.display import Display
from glassformer.runs.parallel import Crew, cores, fitting_at_once

REAL = parallel.WORKER
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TRAIN = """if True:
    import os, sys, time
    path = sys.argv[1]
    with open(path + ".begun", "w") as file:
        file.write(os.environ.get("OMP_NUM_THREADS", "") + " " + str(time.time()))
    if "bad" in path:
        sys.exit("first line\\nout of luck")
    if "long" in path:
        sys.stdin.read()  # until the parent wants it to stop
        open(path + ".saved", "w").close()
        sys.exit(143)
    time.sleep(0.3)
"""


@pytest.fixture(autouse=True)
def _light_workers(monkeypatch):
    """Processes that do not import PyTorch."""
    monkeypatch.setattr(parallel, "WORKER", [sys.executable, "-S", "-c", TRAIN])
    monkeypatch.setattr(parallel, "SOON", 0.01)


def crew(folder, *names, at_once=2):
    return Crew({folder / name: name for name in names}, at_once, CPU, Display(quiet=True))


def begun(path):
    threads, when = Path(f"{path}.begun").read_text().split(" ")
    return threads, float(when)


def test_runs_train_side_by_side_and_share_the_cores(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(parallel, "cores", lambda: 6)
    assert crew(tmp_path, "a", "b", "c").work() == {}
    threads, times = zip(*(begun(tmp_path / name) for name in "abc"), strict=True)
    assert threads == ("3", "3", "3")
    assert times[2] - min(times[:2]) > 0.3


def test_a_run_that_fails_does_not_stop_the_others(tmp_path):
    found = crew(tmp_path, "bad", "b", at_once=1).work()
    assert found == {tmp_path / "bad": "out of luck"}
    assert (tmp_path / "b.begun").exists()


def test_on_an_interruption_all_may_save_before_they_stop(tmp_path, monkeypatch):
    working = crew(tmp_path, "long-1", "long-2", "c")

    def interrupted():
        if all((tmp_path / f"long-{n}.begun").exists() for n in (1, 2)):
            raise KeyboardInterrupt

    monkeypatch.setattr(working, "collect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        working.work()
    assert all((tmp_path / f"long-{n}.saved").exists() for n in (1, 2))
    assert not (tmp_path / "c.begun").exists()


def test_a_process_that_does_not_stop_is_killed(tmp_path, monkeypatch):
    stubborn = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(parallel, "WORKER", stubborn)
    monkeypatch.setattr(parallel, "PATIENCE", 0.1)
    working = crew(tmp_path, "a")
    working.start(tmp_path / "a", 0)
    [one] = working.working.values()
    working.stop()
    assert one.process.returncode == -9


@pytest.mark.full
def test_a_real_worker_ends_in_peace_while_its_input_is_open(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "WORKER", REAL)
    found = crew(tmp_path, "none").work()
    assert found == {tmp_path / "none": f"{tmp_path / 'none'}: not found; check the path"}


def test_each_gpu_trains_one_run(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert fitting_at_once(CUDA, 0) == 3
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6,7")
    places = Crew({}, 4, CUDA, Display(quiet=True))
    seen = [places.environment(place)["CUDA_VISIBLE_DEVICES"] for place in range(4)]
    assert seen == ["4", "6", "7", "4"]


def test_a_cpu_trains_as_many_as_its_cores_and_memory_allow(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 6)
    for room, state, expected in [(None, 0, 6), (9e9, 0, 4), (9e9, 10**9, 3), (1e9, 0, 1)]:
        monkeypatch.setattr(
            parallel.memory, "capacity", lambda device, room=room: room and int(room)
        )
        assert fitting_at_once(CPU, state) == expected
    assert fitting_at_once(torch.device("mps"), 0) == 1
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_a_worker_trains_a_run_and_says_in_a_line_why_it_cannot(tmp_path, monkeypatch, capsys):
    trained = []
    monkeypatch.setattr(worker, "stop_at_end_of_input", lambda: None)
    monkeypatch.setattr(worker, "resume", lambda path, quiet: trained.append((path, quiet)))
    assert worker.main(tmp_path) == 0
    assert trained == [(tmp_path, True)]

    def refuse(path, quiet):
        raise GlassformerError("not found; use --run")

    monkeypatch.setattr(worker, "resume", refuse)
    assert worker.main(tmp_path) == 1
    assert capsys.readouterr().err == "not found; use --run\n"


def test_a_worker_stops_when_its_input_ends(monkeypatch):
    reading, writing = os.pipe()
    signals = []
    with open(reading, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(os, "kill", lambda process, number: signals.append((process, number)))
        waiting = Thread(target=worker.stop_at_end_of_input)
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        assert signals == []
        os.close(writing)
        waiting.join()
    assert signals == [(os.getpid(), signal.SIGTERM)]
