"""Every test starts from the same seed, on one thread: small tensors only wait on more."""

import os
from collections.abc import Iterator

import jaxtyping
import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ours", deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
settings.load_profile("ours")


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
def device() -> str:
    """Where the test runs: GLASSFORMER_TEST_DEVICE, which `make test-cuda` sets to cuda."""
    return os.environ.get("GLASSFORMER_TEST_DEVICE", "cpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("cuda") and not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
