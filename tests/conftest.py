"""Every test starts from the same seed, on one thread: small tensors only wait on more."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import jaxtyping
import pytest
import shape_checks
import torch
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from glassformer.training.bf16_trial import Verdict

shape_checks.install()  # before anything of glassformer is imported

collect_ignore = [
    "other_job/installed"
]  # found as anybody's package would be, where a test says so

settings.register_profile(
    "ours", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("ours")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own, which says that bf16 does not pay, whatever the processor."""
    from glassformer.training.bf16_trial import Verdict, save_verdict

    with cache_in(tmp_path_factory.mktemp("cache")):
        save_verdict(Verdict(works=True, faster=False, finding="said by the tests"))
        yield


@pytest.fixture(scope="session")
def verdict_on_bf16(tmp_path_factory: pytest.TempPathFactory) -> "Verdict":
    """What a trial on this machine says; the processes of pytest-xdist share one."""
    from glassformer.training.bf16_trial import find_verdict

    own = tmp_path_factory.getbasetemp()
    with cache_in((own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "tried"):
        return find_verdict()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """No test cuts the power: what the system has taken need not be on the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _seeds_for_present_devices() -> Iterator[None]:
    """For a GPU that may yet come, torch writes down the whole call stack at every seed."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (torch.cuda, torch.xpu, torch.mtia):
            if not kind.is_available():
                patch.setattr(kind, "manual_seed_all", lambda seed: None, raising=False)
        yield


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield


@pytest.fixture
def half_on_cpu(device: str, request: pytest.FixtureRequest) -> None:
    """For tests that compute in bf16 or fp16 in this process, which some CPUs do not survive."""
    if device == "cpu":
        verdict: Verdict = request.getfixturevalue("verdict_on_bf16")
        if not verdict.works:
            pytest.skip(f"bf16 does not work on this CPU: {verdict.finding}")


@pytest.fixture(autouse=True)
def _same_start() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)


@pytest.fixture
def without_shape_hook() -> Iterator[None]:
    """For calls of a wrong shape: our own words are tested, not the hook's."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must fail and leave nothing behind, and returns what it says."""
    from small_files import everything_in  # beside the tests of the commands

    from glassformer.cli import main

    def run(*words: object) -> str:
        capsys.readouterr()
        before = everything_in(tmp_path)
        assert main([str(word) for word in words]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("glassformer: ")
        assert err.count("\n") == 1
        assert everything_in(tmp_path) == before
        return err.removeprefix("glassformer: ").strip()

    return run


@pytest.fixture
def device() -> str:
    """Where the test runs: GLASSFORMER_TEST_DEVICE, which `make test-cuda` sets to cuda."""
    return os.environ.get("GLASSFORMER_TEST_DEVICE", "cpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], IO[bytes]]:
    """Puts bytes on standard input."""

    def put(content: bytes) -> IO[bytes]:
        (tmp_path / "stdin").write_bytes(content)
        file = (tmp_path / "stdin").open("rb")
        monkeypatch.setattr(sys, "stdin", file)
        return file

    return put
