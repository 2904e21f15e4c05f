"""Checkpoints on disk.

    checkpoints/step-120/   model, optimiser, average (all .safetensors), state.json
    checkpoints/latest      the name of the newest one

A checkpoint is written under a temporary name, synced and renamed, and only then named in `latest`:
a process killed at any moment leaves the last good state. `state.json` holds the checksum of each
file; a damaged checkpoint is skipped in favour of the previous one. If a model is sharded over
several processes, each writes its own file, and any number of processes can read them.
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
from glassformer.training.fsdp import is_shard, local
from glassformer.training.progress import Progress, read_progress
from glassformer.training.weights import Weights, write_tensors


def write_checkpoint(
    folder: Path, progress: Progress, groups: Mapping[str, Mapping[str, Tensor]], *, sharded: bool
) -> None:
    """Write groups of tensors (model, optimiser, average) to disk atomically.

    If the model is sharded, every process writes its shards.
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
            suffix = f"-{processes.rank()}-of-{processes.world_size()}" if sharded else ""
            for group, tensors in groups.items():
                shards = {
                    key: local(tensor)
                    for key, tensor in tensors.items()
                    if processes.is_first() or is_shard(tensor)
                }
                write_tensors(shards, temporary / f"{group}{suffix}.safetensors")
        if sharded:
            processes.wait()
        if processes.is_first():
            publish(folder, name, temporary, progress)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)  # the disk may be full
        raise
    processes.wait()


def publish(folder: Path, name: str, temporary: Path, progress: Progress) -> None:
    """Move a checkpoint that is fully written to its final name."""
    files = {path.name: checksum(path) for path in sorted(temporary.iterdir())}
    write_json(progress.as_values() | {"files": files}, temporary / "state.json")
    sync(temporary)
    remove_checkpoint(folder / name)
    temporary.rename(folder / name)
    sync(folder)
    name_latest(folder, progress.step)


def name_latest(folder: Path, step: int) -> None:
    """Write down that the newest checkpoint is that of this step, over what a kill has left."""
    if processes.is_first():
        write_text(f"step-{step}\n", folder / "latest")


def rewrite_progress(folder: Path, progress: Progress) -> None:
    """Replace the progress stored in an existing checkpoint."""
    if processes.is_first():
        path = folder / f"step-{progress.step}" / "state.json"
        _, files = read_progress(path)
        write_json(progress.as_values() | {"files": files}, path)
    processes.wait()


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """The newest intact checkpoint, and what is wrong with later ones."""

    home: Path
    progress: Progress
    damaged: list[str]


def find_checkpoint(folder: Path) -> FoundCheckpoint | None:
    """The newest intact checkpoint; None if there is none yet. Damaged ones are skipped."""
    homes = sorted(
        (path for path in folder.glob("step-*") if re.fullmatch(r"step-\d+", path.name)),
        key=step_of,
        reverse=True,
    )
    damaged: list[str] = []
    for home in homes:
        try:
            return FoundCheckpoint(home, verified_progress(home), damaged)
        except GlassformerError as error:
            damaged.append(str(error))
    if damaged:
        raise GlassformerError(
            f"{folder}: all checkpoints are damaged ({damaged[0]}); remove the folder to train "
            f"from scratch"
        )
    return None


def verified_progress(home: Path) -> Progress:
    """The progress of a checkpoint, after verifying the checksums of all its files."""
    progress, files = read_progress(home / "state.json")
    if progress.step != step_of(home):
        raise GlassformerError(f"{home / 'state.json'}: belongs to step {progress.step}")
    for name, expected in files.items():
        path = home / name
        if not path.is_file():
            raise GlassformerError(f"{path}: is missing")
        if checksum(path) != expected:
            raise GlassformerError(f"{path}: is damaged")
    return progress


def intact_best(folder: Path, progress: Progress) -> tuple[list[tuple[float, int]], list[str]]:
    """The best validations whose checkpoints are intact, and what is wrong with the others."""
    best, errors = [], []
    for score, step in progress.best:
        home = folder / f"step-{step}"
        try:
            verified_progress(home)
        except GlassformerError as error:
            errors.append(str(error))
        else:
            best.append((score, step))
    return best, errors


def read_group(home: Path, group: str) -> Weights:
    """The full tensors of a group, however many processes wrote them."""
    return dict(iter_tensors(home, group))


def iter_tensors(home: Path, group: str) -> Iterator[tuple[str, Tensor]]:
    """The full tensors of a group, one at a time."""
    single = home / f"{group}.safetensors"
    sharded = sorted(home.glob(f"{group}-*-of-*.safetensors"), key=rank_of)
    try:
        files = [safe_open(path, framework="pt") for path in sharded or [single]]
        names = [set(file.keys()) for file in files]
        for name in files[0].keys():  # noqa: SIM118, it is no dict
            shards = [
                file.get_tensor(name) for file, has in zip(files, names, strict=True) if name in has
            ]
            yield name, torch.cat(shards) if len(shards) > 1 else shards[0]
    except (OSError, SafetensorError) as error:
        raise GlassformerError(
            f"{home}: not a complete checkpoint ({error}); remove it to resume from the one before"
        ) from None


def checkpoint_weights(folder: Path, step: int) -> Weights:
    """The weights to use from a checkpoint: the moving average if it has one."""
    home = folder / f"step-{step}"
    averaged = any(home.glob("average*.safetensors"))
    return read_group(home, "average" if averaged else "model")


def prune_checkpoints(folder: Path, progress: Progress, *, finished: bool = False) -> None:
    """Keep only the two newest and the best checkpoints; remove incomplete ones, too.

    Args:
        finished: Whether training has ended: the one before the newest is then of no use.
    """
    if not processes.is_first():
        return
    older = [path for path in folder.glob("step-*") if step_of(path) < progress.step]
    before = max(map(step_of, older), default=progress.step)
    newest = (progress.step,) if finished else (progress.step, before)
    wanted = {f"step-{n}" for n in (*newest, *(step for _, step in progress.best))}
    for path in (*folder.glob("step-*"), *folder.glob(".step-*")):
        if path.name not in wanted:
            remove_checkpoint(path)


def discard(folder: Path, step: int) -> None:
    """Remove the newest checkpoint, which turned out to have diverged."""
    if processes.is_first():
        remove_checkpoint(folder / f"step-{step}")
        before = max(map(step_of, folder.glob("step-*")), default=None)
        if before is None:
            remove(folder / "latest")
        else:
            name_latest(folder, before)
    processes.wait()


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint: rename it first, so that its name never refers to an incomplete one."""
    if path.exists() and not path.name.startswith("."):
        hidden = path.with_name(f".{path.name}.old")
        shutil.rmtree(hidden, ignore_errors=True)
        path = path.rename(hidden)
    shutil.rmtree(path, ignore_errors=True)


def step_of(path: Path) -> int:
    """The step of a checkpoint, by its name."""
    found = re.fullmatch(r"step-(\d+)", path.name)
    return int(found[1]) if found else -1


def rank_of(path: Path) -> int:
    """The rank of the process that wrote a file, by its name."""
    found = re.search(r"-(\d+)-of-\d+$", path.stem)
    return int(found[1]) if found else 0
