"""How fast runs of AN4 train and transcribe, one after another.

    python benchmarks/an4_speed.py runs/table/conformer-0 --device cpu --threads 2

A step is a forward and a backward pass and an update; with the data of the run at hand, and on a
GPU only. Transcribing begins with files, and is timed with the search of the run and with greedy
CTC, the second of two passes over the test recordings each.
"""

import argparse
import json
import time
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch

import glassformer
from glassformer.data.audio.reading import sound_info
from glassformer.data.batches import epoch_batches
from glassformer.data.catalog import open_entry
from glassformer.runs.run import Run
from glassformer.runs.trained import predictions

WARM_UP, TIMED = 10, 50  # steps


def seconds_of(work: Callable[[], Any]) -> float:
    """How long some work takes, to its end."""
    started = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def step_seconds(run: Run) -> float:
    """The mean time of a training step."""
    task, device = run.folder.open_task(run.config, run.folder.data), run.machine.device
    model = task.model().to(device).train()
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    lengths, budget = task.lengths("train"), run.config.data.batch_tokens
    rows = epoch_batches(lengths, budget, padded=task.padded, mixed=False, seed=0, epoch=0)
    batches = cycle([task.batch("train", some, 0).to(device) for some in rows])

    def steps(count: int) -> None:
        for batch in islice(batches, count):
            with run.machine.autocast():
                loss = task.loss(task.forward(model, batch), batch)
            (loss.total / loss.count).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()

    seconds_of(lambda: steps(WARM_UP))
    return seconds_of(lambda: steps(TIMED)) / TIMED


def times_real_time(run: Run, paths: list[str], *, greedy: bool) -> float:
    """Seconds of sound that are transcribed in a second."""
    predictor: Any = run.predictor
    if greedy:
        decode = replace(predictor.searcher.decode, method="greedy", best=1)
        predictor = copy(predictor)
        predictor.searcher = replace(predictor.searcher, search="ctc", decode=decode, fusion=None)
    model = run.fast_model.eval()

    def transcribe() -> None:
        list(predictions(predictor, model, run.machine, paths))

    seconds_of(transcribe)
    return sum(sound_info(path).seconds for path in paths) / seconds_of(transcribe)


def main() -> None:
    """Measure each run, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    paths = [row["audio"] for row in open_entry("an4").rows() if row["split"] == "test"]
    for path in args.runs:
        run = glassformer.load(path, device=args.device)
        found: dict[str, Any] = {"run": path.name, "search": run.config.task.search}
        found["times real time"] = round(times_real_time(run, paths, greedy=False), 1)
        if run.config.task.ctc_weight:
            found["greedy CTC"] = round(times_real_time(run, paths, greedy=True), 1)
        if run.machine.device.type == "cuda":
            found["step, ms"] = round(1000 * step_seconds(run), 1)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
