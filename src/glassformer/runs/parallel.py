"""Prepared runs, trained one after the other, or several at once in processes of their own."""

import gc
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import torch

from glassformer.errors import GlassformerError
from glassformer.runs.api import resume
from glassformer.runs.display import Display, clock
from glassformer.training import memory

NEEDED = 2 * 10**9  # bytes of a training process: program, libraries, data, a small model
SOON = 0.2  # seconds between two looks at the processes
PATIENCE = 60.0  # seconds in which a process may save before it is killed
WORKER = [sys.executable, "-m", "glassformer.runs.worker"]


def fitting_at_once(device: torch.device, state_bytes: int) -> int:
    """How many runs the machine can train at once without getting in each other's way.

    Args:
        state_bytes: Of weights, gradients and optimiser of the largest.
    """
    if device.type == "cuda":
        return max(1, torch.cuda.device_count())
    if device.type != "cpu":
        return 1
    room = memory.capacity(device)
    by_memory = cores() if room is None else room // (NEEDED + state_bytes)
    return max(1, min(cores(), by_memory))


def cores() -> int:
    """The processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def train_all(
    runs: Mapping[Path, str], at_once: int, device: torch.device, display: Display
) -> dict[Path, str]:
    """Train prepared runs to their end; returns why some failed.

    Args:
        runs: What each run is, in words.
    """
    if at_once == 1:
        return {path: why for path in runs if (why := _train_here(path, runs, display))}
    return Crew(runs, at_once, device, display).work()


def _train_here(path: Path, runs: Mapping[Path, str], display: Display) -> str:
    """Train a run in this process; returns why it failed, or nothing."""
    display.say(f"{_place(path, runs)}: {runs[path]}")
    try:
        resume(path, quiet=display.quiet)
    except GlassformerError as error:
        display.say(f"failed: {error}")
        return str(error)
    finally:
        gc.collect()  # so that the next one is not measured with the memory of this one
        memory.trim_heap(torch.device("cpu"))
    return ""


def _place(path: Path, runs: Mapping[Path, str]) -> str:
    return f"run {list(runs).index(path) + 1} of {len(runs)}"


@dataclass(slots=True)
class Worker:
    """A process that trains a run; what it complains about goes to a file."""

    path: Path
    process: subprocess.Popen[bytes]
    complaints: IO[bytes]
    started: float = field(default_factory=time.monotonic)

    def end(self) -> str:
        """Why the process, which has ended, failed; empty if it did not."""
        with self.complaints as file:
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
        if self.process.stdin is not None:
            self.process.stdin.close()
        code = self.process.returncode
        return "" if code == 0 else (lines or [f"its process ended with code {code}"])[-1]


class Crew:
    """Processes that train runs side by side, one on each GPU or with an equal share of cores."""

    def __init__(
        self, runs: Mapping[Path, str], at_once: int, device: torch.device, display: Display
    ) -> None:
        self.runs, self.at_once, self.device, self.display = runs, at_once, device, display
        self.working: dict[int, Worker] = {}  # by place
        self.failures: dict[Path, str] = {}

    def work(self) -> dict[Path, str]:
        """Train them all; returns why some failed."""
        waiting = list(self.runs)
        try:
            while waiting or self.working:
                free = [place for place in range(self.at_once) if place not in self.working]
                for place in free[: len(waiting)]:
                    self.start(waiting.pop(0), place)
                time.sleep(SOON)
                self.collect()
        finally:
            self.stop()
        return self.failures

    def start(self, path: Path, place: int) -> None:
        """Start the process of a run, out of reach of signals to this one."""
        complaints = TemporaryFile()  # noqa: SIM115
        process = subprocess.Popen(
            [*WORKER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=complaints,
            env=self.environment(place),
            start_new_session=True,
        )
        self.working[place] = Worker(path, process, complaints)
        self.display.say(f"{_place(path, self.runs)}: {self.runs[path]}: started")

    def environment(self, place: int) -> dict[str, str]:
        """That of a process: its own GPU, or its share of the cores."""
        if self.device.type == "cuda":
            every = os.environ.get("CUDA_VISIBLE_DEVICES", "")
            names = every.split(",") if every else list(map(str, range(torch.cuda.device_count())))
            return os.environ | {"CUDA_VISIBLE_DEVICES": names[place % len(names)]}
        threads = str(max(1, cores() // self.at_once))
        return {"OMP_NUM_THREADS": threads, **os.environ}

    def collect(self) -> None:
        """Note the processes that have ended."""
        for place, worker in list(self.working.items()):
            if worker.process.poll() is None:
                continue
            del self.working[place]
            if why := worker.end():
                self.failures[worker.path] = why
            took = clock(time.monotonic() - worker.started)
            end = f"failed: {why}" if why else f"finished in {took}"
            self.display.say(f"{_place(worker.path, self.runs)}: {self.runs[worker.path]}: {end}")

    def stop(self) -> None:
        """Let those that still work save and stop: they do so when their input ends."""
        for worker in self.working.values():
            assert worker.process.stdin is not None
            worker.process.stdin.close()
        for worker in self.working.values():
            try:
                worker.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
            worker.end()
