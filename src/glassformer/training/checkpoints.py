"""Checkpoints on disk.

    checkpoints/step-120/   model, optimiser, average (all .safetensors), state.json
    checkpoints/latest      the name of the newest whole one

A checkpoint is written under a temporary name, synced and renamed, and only then does `latest` name
it: a process killed at any moment leaves the last good state. `state.json` knows the checksum of
each file; a damaged checkpoint is passed over for the one before. Where a model is dealt out to
several processes each writes a file of its own, and any number of processes can read them.
"""

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from glassformer import processes
from glassformer.errors import GlassformerError
from glassformer.files import checksum, remove, sync, write_json, write_text
from glassformer.training.fsdp import is_part, local
from glassformer.training.progress import Progress, read_progress
from glassformer.training.weights import Weights, write_tensors


def write_checkpoint(
    folder: Path, progress: Progress, groups: Mapping[str, Mapping[str, Tensor]], *, sharded: bool
) -> None:
    """Put groups of tensors (model, optimiser, average) on disk, whole or not at all.

    Where the model is sharded, every process writes what it holds.
    """
    name = f"step-{progress.step}"
    temporary = folder / f".{name}.new"
    if processes.is_first():
        folder.mkdir(exist_ok=True)
        remove(temporary)
        temporary.mkdir()
    if sharded:
        processes.wait()
    try:
        if sharded or processes.is_first():
            ending = f"-{processes.rank()}-of-{processes.world_size()}" if sharded else ""
            for group, tensors in groups.items():
                held = {
                    key: local(tensor)
                    for key, tensor in tensors.items()
                    if processes.is_first() or is_part(tensor)
                }
                write_tensors(held, temporary / f"{group}{ending}.safetensors")
        if sharded:
            processes.wait()
        if processes.is_first():
            finish(folder, name, temporary, progress)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)  # its space may be what is missing
        raise
    processes.wait()


def finish(folder: Path, name: str, temporary: Path, progress: Progress) -> None:
    """Give a checkpoint that is written its name."""
    files = {path.name: checksum(path) for path in sorted(temporary.iterdir())}
    write_json(progress.as_values() | {"files": files}, temporary / "state.json")
    sync(temporary)
    forget(folder / name)
    temporary.rename(folder / name)
    sync(folder)
    write_text(name + "\n", folder / "latest")


def rewrite_progress(folder: Path, progress: Progress) -> None:
    """Put a decision into a checkpoint that is there."""
    if processes.is_first():
        path = folder / f"step-{progress.step}" / "state.json"
        _, files = read_progress(path)
        write_json(progress.as_values() | {"files": files}, path)
    processes.wait()


@dataclass(frozen=True, slots=True)
class Found:
    """The newest checkpoint that is whole, and what is wrong with those after it."""

    home: Path
    progress: Progress
    damaged: list[str]


def find_checkpoint(folder: Path) -> Found | None:
    """The newest whole checkpoint; None when there is none yet. Damaged ones are passed over."""
    homes = sorted(
        (path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)),
        key=step_of,
        reverse=True,
    )
    damaged: list[str] = []
    for home in homes:
        try:
            return Found(home, whole_progress(home), damaged)
        except GlassformerError as error:
            damaged.append(str(error))
    if damaged:
        raise GlassformerError(
            f"{folder}: no checkpoint is whole ({damaged[0]}); remove the folder to train from the "
            f"start"
        )
    return None


def whole_progress(home: Path) -> Progress:
    """The progress of a checkpoint whose files are all as they were written."""
    progress, files = read_progress(home / "state.json")
    if progress.step != step_of(home):
        raise GlassformerError(f"{home / 'state.json'}: tells of step {progress.step}")
    for name, expected in files.items():
        path = home / name
        if not path.is_file():
            raise GlassformerError(f"{path}: is missing")
        if checksum(path) != expected:
            raise GlassformerError(f"{path}: is damaged")
    return progress


def whole_best(folder: Path, progress: Progress) -> tuple[list[tuple[float, int]], list[str]]:
    """The best validations whose checkpoints are whole, and what is wrong with the others."""
    best, wrong = [], []
    for score, step in progress.best:
        home = folder / f"step-{step}"
        try:
            whole_progress(home)
        except GlassformerError as error:
            wrong.append(str(error))
        else:
            best.append((score, step))
    return best, wrong


def read_group(home: Path, group: str) -> Weights:
    """The tensors of a group, whole, however many processes wrote them."""
    return dict(each_tensor(home, group))


def each_tensor(home: Path, group: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a group one by one."""
    single = home / f"{group}.safetensors"
    parts = sorted(home.glob(f"{group}-*-of-*.safetensors"), key=number_of)
    try:
        files = [safe_open(path, framework="pt") for path in parts or [single]]
        names = [set(file.keys()) for file in files]
        for name in files[0].keys():  # noqa: SIM118, it is no dict
            held = [
                file.get_tensor(name) for file, has in zip(files, names, strict=True) if name in has
            ]
            yield name, torch.cat(held) if len(held) > 1 else held[0]
    except (OSError, SafetensorError) as error:
        raise GlassformerError(
            f"{home}: not a whole checkpoint ({error}); remove it to go on from the one before"
        ) from None


def checkpoint_weights(folder: Path, step: int) -> Weights:
    """The weights a checkpoint would be used with: its average's, where it has one."""
    home = folder / f"step-{step}"
    averaged = any(home.glob("average*.safetensors"))
    return read_group(home, "average" if averaged else "model")


def tidy(folder: Path, progress: Progress) -> None:
    """Forget checkpoints that are neither of the two newest nor among the best, and half ones."""
    if not processes.is_first():
        return
    older = [path for path in folder.glob("step-*") if step_of(path) < progress.step]
    before = max(map(step_of, older), default=progress.step)
    wanted = {f"step-{n}" for n in (progress.step, before, *(step for _, step in progress.best))}
    for path in (*folder.glob("step-*"), *folder.glob(".step-*")):
        if path.name not in wanted:
            forget(path)


def discard(folder: Path, step: int) -> None:
    """Forget a checkpoint that turned out to be no use; the one before is the newest again."""
    if processes.is_first():
        forget(folder / f"step-{step}")
        before = max(map(step_of, folder.glob("step-*")), default=None)
        if before is None:
            remove(folder / "latest")
        else:
            write_text(f"step-{before}\n", folder / "latest")
    processes.wait()


def forget(path: Path) -> None:
    """Remove a checkpoint, which is whole until its name is gone."""
    if path.exists() and not path.name.startswith("."):
        hidden = path.with_name(f".{path.name}.old")
        shutil.rmtree(hidden, ignore_errors=True)
        path = path.rename(hidden)
    shutil.rmtree(path, ignore_errors=True)


def step_of(path: Path) -> int:
    """The step of a checkpoint, by its name."""
    found = re.fullmatch(r"step-(\d+)", path.name)
    return int(found[1]) if found else -1


def number_of(path: Path) -> int:
    """Which process wrote a file, by its name."""
    found = re.search(r"-(\d+)-of-\d+$", path.stem)
    return int(found[1]) if found else 0
