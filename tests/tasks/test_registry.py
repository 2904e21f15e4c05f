"""Jobs of other packages: found by their entry points, loaded when used, refused in one line."""

import sys

import pytest

from glassformer import tasks
from glassformer.cli.job_options import declared
from glassformer.cli.options import described_jobs
from glassformer.errors import GlassformerError

MODULE = """
from glassformer.tasks.about import About, Option
OPTIONS = [Option(name="x", help="")]
ABOUT = About(name="fine", summary="Fine.", job="elsewhere:JOB", options=OPTIONS)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with these entry points, until the test ends."""

    def write(*lines):
        package = tmp_path / "elsewhere-2.dist-info"
        package.mkdir()
        (package / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 2\n")
        (package / "entry_points.txt").write_text("\n".join(["[glassformer.jobs]", *lines]))
        (tmp_path / "elsewhere.py").write_text(MODULE)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(tasks.JOBS, "loaded", {})
        tasks._entry_points.cache_clear()

    yield write
    tasks._entry_points.cache_clear()
    sys.modules.pop("elsewhere", None)


def test_a_job_of_another_package_stands_after_those_of_this_one(install):
    install("fine = elsewhere:ABOUT")
    assert [*tasks.JOBS] == [*tasks.BUILT_IN, "fine"]
    assert tasks.JOBS.about("fine").summary == "Fine."
    assert "fine: Fine." in described_jobs()
    assert declared()["x"][1] == ["fine"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("bad = nowhere:ABOUT", r"nowhere:ABOUT \(No module named 'nowhere'\)"),
        ("bad = elsewhere:NO", r"elsewhere:NO \(module 'elsewhere' has no attribute 'NO'\)"),
        ("bad = elsewhere:ABOUT", r"elsewhere:ABOUT \(its About is named 'fine'\)"),
        ("fine = elsewhere:ABOUT", r"elsewhere:JOB \(module 'elsewhere' has no attribute 'JOB'\)"),
    ],
)
def test_a_job_that_cannot_be_loaded_is_refused_in_one_line_and_harms_no_other(
    line, reason, install
):
    install(line)
    name = line.split()[0]
    assert f"\n{name}" in described_jobs()
    assert declared()["align"][1] == ["transcribe", "translate"]
    with pytest.raises(GlassformerError, match=f"the job '{name}' cannot be loaded from {reason};"):
        tasks.JOBS[name]
