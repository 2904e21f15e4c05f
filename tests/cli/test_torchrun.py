"""`torchrun -m glassformer train ...`: one model from two processes, of one machine or of two.

One of them is killed; and the script for SLURM stops at a time limit and asks for its place again.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from launched import STOP
from quick import quickly

from glassformer import load
from glassformer.cli.app import main
from glassformer.runs.fit import answers_on
from glassformer.runs.folder import reporter_of
from glassformer.training.loader import evaluation_rows
from glassformer.training.setup import TrainSetup
from glassformer.training.weights import read_tensors

SETTINGS = (
    *("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.encoder.dropout=0.0", "data.batch_tokens=64", "data.tokenizer.kind=characters"),
    *("train.validate_every=15", "train.log_every=5", "data.token_dropout=0.0", "model.ngrams=no"),
)
STEPS = 60


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.csv"
    lines = [f"{'abc'[n % 3] * (2 + n % 7)}{n},{'xy'[n % 2]}" for n in range(97)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def asked(data, *settings):
    words = ["train", "classify", str(data), "--no-pretrain", "--json", "--steps", str(STEPS)]
    return words + [word for setting in (*SETTINGS, *settings) for word in ("--set", setting)]


def torchrun(*words, options=("--standalone", "--nproc-per-node=2")):
    launcher = ["-m", "torch.distributed.run", *options]
    return subprocess.Popen(
        [sys.executable, *launcher, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def alone(data, tmp_path_factory):
    """What one process learns."""
    run = tmp_path_factory.mktemp("alone") / "one"
    with quickly():
        assert main([*asked(data), "--run", str(run)]) == 0
    return run


@pytest.fixture(scope="module")
def launched(data, tmp_path_factory):
    """Two processes, given a mistake, a training that is asked to stop, and resume."""
    folder = tmp_path_factory.mktemp("launched")
    process = torchrun(Path(__file__).with_name("launched.py"), folder, *asked(data))
    out, err = process.communicate(timeout=150)
    assert process.returncode == 0, err
    codes = [json.loads((folder / f"codes-{n}.json").read_text(encoding="utf-8")) for n in (0, 1)]
    return folder / "two", codes, out, err


def alike(alone, together):
    """The same weights and losses, but for sums in another order."""
    found = read_tensors(together / "model.safetensors")
    for name, tensor in read_tensors(alone / "model.safetensors").items():
        if not name.endswith("to_k.bias"):  # softmax does not see it: its gradient is rounding
            torch.testing.assert_close(found[name], tensor, rtol=1e-2, atol=1e-3)
    lines = [map(json.loads, (run / "metrics.jsonl").open()) for run in (alone, together)]
    losses = [[line["loss"] for line in log if "loss" in line] for log in lines]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_a_mistake_is_told_once(launched):
    _, codes, _, err = launched
    assert [own[0] for own in codes] == [1, 1]
    assert err.count("nowhere.csv: not found") == 1
    assert "see its error" not in err  # as the others end


def test_two_processes_that_stop_and_resume_come_to_what_one_learns(alone, launched):
    run, codes, out, err = launched
    assert [own[1:] for own in codes] == [[143, 0], [143, 0]]
    assert err.count("glassformer: interrupted") == 1
    assert err.count("resuming from step ") == err.count(f"resuming from step {STOP}") == 1
    assert json.loads(out)["run"] == str(run)  # said once, by the first process
    alike(alone, run)


def test_the_report_is_on_the_answers_of_both_processes(launched):
    """Each answers some of the rows, with what the first has calibrated."""
    run = load(launched[0])
    task, setup = (
        run.folder.open_task(run.config, run.folder.data),
        TrainSetup(run.config.train, run.config.data, run.machine, run.config.seed),
    )
    shares = evaluation_rows(task, setup, "test")
    assert len(shares) > 1  # otherwise nothing is dealt out
    expected = task.combine(answers_on(task, run.model, setup, "test"), "test")
    report = json.loads((launched[0] / "report.json").read_text(encoding="utf-8"))
    found = report["scores"]["this model"]
    for name, score in reporter_of(task).scores(expected).items():
        assert found[name]["value"] == pytest.approx(score.value, abs=1e-6)


def workers(launcher):
    """The processes that a launcher started."""
    children = f"/proc/{launcher.pid}/task/{launcher.pid}/children"
    with open(children) as file:
        return [int(word) for word in file.read().split()]


def wait_for_a_checkpoint(launcher, run):
    until = time.monotonic() + 100
    while not (run / "checkpoints" / "latest").exists():
        assert time.monotonic() < until
        assert launcher.poll() is None, launcher.communicate()[1]
        time.sleep(0.01)


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="finds workers through /proc")
@pytest.mark.parametrize("settings", [(), ("train.shard=true",)], ids=["ddp", "shard"])
def test_a_killed_worker_ends_the_job_and_resume_comes_to_what_one_process_learns(
    data, alone, tmp_path, settings
):
    run = tmp_path / "two"
    launcher = torchrun("-m", "glassformer", "--", *asked(data, *settings), "--run", run)
    wait_for_a_checkpoint(launcher, run)
    os.kill(max(workers(launcher)), signal.SIGKILL)
    _, err = launcher.communicate(timeout=100)
    assert launcher.returncode != 0
    assert not (run / "model.safetensors").exists()

    again = torchrun("-m", "glassformer", "--", "resume", run, "--json")
    out, err = again.communicate(timeout=150)
    assert again.returncode == 0, err
    assert json.loads(out)["run"] == str(run)  # said once, by the first process
    assert "resuming from step " in err
    alike(alone, run)


@pytest.mark.full
def test_two_launchers_as_on_two_machines_come_to_what_one_process_learns(data, alone, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = tmp_path / "two"
    meet = ("--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--local-addr=127.0.0.1")
    options = (*meet, f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=two")
    words = ("-m", "glassformer", "--", *asked(data), "--run", run)
    machines = [torchrun(*words, options=options) for _ in range(2)]
    ends = [machine.communicate(timeout=250) for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], ends
    [said] = [out for out, _ in ends if out]
    assert json.loads(said)["run"] == str(run)  # said once, by the first process of all
    alike(alone, run)


MACHINES = Path(__file__).parents[2] / "docs" / "operate" / "machines.md"
SCONTROL = """#!/bin/bash
if [ "$1" = show ]; then echo first; echo second; else echo "$@" >> requeued; fi
"""
PRETENDED = """#!/bin/bash
trap 'echo saved >> "$run/config.toml"; exit 143' TERM
mkdir -p "$run"; touch "$run/config.toml" started
[ -e requeued ] || while true; do sleep 0.05; done
"""


def slurm_job(folder, launcher):
    """Start the script of the guide where `srun` and `scontrol` are played by two others."""
    [script] = re.findall(
        r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", MACHINES.read_text("utf-8"), re.S
    )
    script = script.replace("/shared/", f"{folder}/").replace("run=", "export run=", 1)
    (folder / "job.sh").write_text(script, encoding="utf-8")
    programs = {"srun": '#!/bin/bash\nexec "$@"\n', "scontrol": SCONTROL, "torchrun": launcher}
    for name, text in programs.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
    settings = {"SLURM_JOB_ID": "17", "SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "n[1-2]"}
    there = os.environ | settings | {"PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.Popen(
        ["bash", "job.sh"], cwd=folder, env=there, stderr=subprocess.PIPE, text=True
    )


def until(holds, process):
    end = time.monotonic() + 100
    while not holds():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)


def test_the_script_for_slurm_stops_at_the_time_limit_and_requeues_until_it_is_done(tmp_path):
    job = slurm_job(tmp_path, PRETENDED)
    until((tmp_path / "started").exists, job)
    job.send_signal(signal.SIGUSR1)
    assert (job.wait(timeout=20), (tmp_path / "requeued").read_text()) == (143, "requeue 17\n")
    assert (tmp_path / "runs" / "reviews" / "config.toml").read_text() == "saved\n"
    again = slurm_job(tmp_path, PRETENDED)
    assert (again.wait(timeout=20), (tmp_path / "requeued").read_text()) == (0, "requeue 17\n")


def test_the_script_for_slurm_does_not_requeue_what_fails(tmp_path):
    job = slurm_job(tmp_path, "#!/bin/bash\nexit 3\n")
    assert job.wait(timeout=20) == 3
    assert not (tmp_path / "requeued").exists()


@pytest.mark.full
def test_the_script_for_slurm_saves_and_resumes_a_training(data, alone, tmp_path):
    (tmp_path / "reviews.csv").write_bytes(data.read_bytes())
    settings = " ".join(asked(data)[3:])
    launcher = f"""#!/bin/bash
while [ "$1" != -- ]; do shift; done
shift
if [ "$1" = train ]; then more="{settings}"; fi
exec {sys.executable} -m glassformer "$@" $more
"""
    run = tmp_path / "runs" / "reviews"
    job = slurm_job(tmp_path, launcher)
    until((run / "checkpoints" / "latest").exists, job)
    job.send_signal(signal.SIGUSR1)
    _, err = job.communicate(timeout=100)
    assert "stopping after this step, with a checkpoint" in err
    assert (job.returncode, (tmp_path / "requeued").read_text()) == (143, "requeue 17\n")
    assert not (run / "model.safetensors").exists()
    again = slurm_job(tmp_path, launcher)
    _, err = again.communicate(timeout=100)
    assert (again.returncode, (tmp_path / "requeued").read_text()) == (0, "requeue 17\n"), err
    assert "resuming from step " in err
    alike(alone, run)


def test_a_model_is_dealt_out_only_to_processes_that_were_started(data, tmp_path, capsys):
    words = [*asked(data, "train.shard=true"), "--run", str(tmp_path / "run")]
    assert main(words) == 1
    assert "train.shard spreads a model over several processes" in capsys.readouterr().err
