"""The package as people install it: a wheel, in a fresh environment, outside of the repository."""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]
QUICK = ("--steps", "20", "--no-pretrain", "--set", "machine.threads=1")


@pytest.mark.full
def test_a_wheel_installs_in_a_fresh_environment_and_trains_the_embedded_job(tmp_path):
    pinned = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    pinned.pop("PYTHONPATH", None)

    def run(*words, **options):
        done = subprocess.run(
            list(map(str, words)),
            env=pinned,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            **options,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path / "w", ROOT)
    (wheel,) = (tmp_path / "w").glob("glassformer-*.whl")
    page = ("index.html", "main.js", "shell.css", "icon.svg", "strings/en.js", "strings/zh.js")
    with ZipFile(wheel) as packed:
        assert {f"glassformer/serving/page/{name}" for name in page} <= {*packed.namelist()}
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "torch")
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[embedded]")
    command = tmp_path / "env" / "bin" / "glassformer"
    out = run(command, "train", "classify", "languages", *QUICK, "--run", "run", "--json")
    assert json.loads(out)["scores"]["accuracy"]["value"] > 0.03  # of thirty languages
    (answer,) = run(command, "predict", "run", "München").splitlines()
    assert answer
    run(command, "explain", "run", "München", "--out", "why.html")
    assert "chooseTarget(0)" in (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "languages" in run(command, "reproduce")
    where = run(python, "-c", "import glassformer; print(glassformer.__file__)").strip()
    assert Path(where).is_relative_to(tmp_path)
