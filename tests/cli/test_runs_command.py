"""`glassformer runs`: what is there, and what can go without losing anything; and all the help."""

import errno
import json
import os
import re
import resource
import shutil
import subprocess
import sys

import pytest
import typer
from small_files import everything_in, trained

from glassformer.cli import app, main
from glassformer.runs.listing import list_runs_in, prunable
from glassformer.runs.lock import run_lock


@pytest.fixture
def home(tmp_path_factory, tmp_path):
    """A folder of runs: one finished, one not, one broken, and something else."""
    there = trained(tmp_path_factory)
    runs = tmp_path / "runs"
    for name in ("finished", "halfway", "broken"):
        shutil.copytree(there / "run", runs / name)
    for name in ("report.json", "report.html", "model.safetensors"):
        (runs / "halfway" / name).unlink()
    (runs / "broken" / "config.toml").write_text("job = [", encoding="utf-8")
    (runs / "notes").mkdir()
    (runs / "notes" / "todo.txt").write_text("more data", encoding="utf-8")
    (runs / "file").write_text("", encoding="utf-8")
    shutil.copy(there / "test.csv", tmp_path / "test.csv")
    return runs


def dead_process():
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_list_shows_each_run_its_job_its_state_and_its_score(home, capsys):
    assert main(["runs", "list", str(home), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    found = {entry["run"].rpartition("/")[2]: entry for entry in json.loads(out)}
    assert list(found) == ["broken", "finished", "halfway"]
    assert found["finished"]["job"] == found["halfway"]["job"] == "classify"
    assert found["finished"]["state"] == "finished"
    assert found["finished"]["score"].startswith("accuracy ")
    assert (found["halfway"]["state"], found["halfway"]["score"]) == (
        "interrupted, can be resumed",
        "",
    )
    assert "not valid TOML" in found["broken"]["state"]
    size = sum(p.stat().st_size for p in (home / "finished").rglob("*") if p.is_file())
    assert found["finished"]["bytes"] == size


def test_a_run_with_a_hostile_config_does_not_hide_the_others(home):
    (home / "broken" / "config.toml").write_text("a = " + "[" * 5000)
    found = states(home)
    assert "nested too deeply for settings" in found["broken"]
    assert found["finished"] == "finished"


def states(home):
    return {run.path.name: run.state for run in list_runs_in(home)}


def test_a_run_whose_model_is_harmed_is_not_finished_and_resume_makes_it_anew(home, capsys):
    model = home / "finished" / "model.safetensors"
    whole = model.read_bytes()
    for harm in (model.unlink, lambda: model.write_bytes(whole[:-100])):
        harm()
        assert states(home)["finished"] == "interrupted, can be resumed"
        before = everything_in(home / "finished")
        assert main(["runs", "prune", str(home)]) == 0
        assert everything_in(home / "finished") == before
        assert main(["resume", str(home / "finished"), "--quiet"]) == 0
        assert model.read_bytes() == whole
        assert states(home)["finished"] == "finished"
    model.unlink()
    shutil.rmtree(home / "finished" / "data")
    assert states(home)["finished"] == "incomplete; copy the run again"


def test_a_run_that_is_being_trained_is_listed_so_and_not_pruned(home):
    with run_lock(home / "halfway"), run_lock(home / "finished"):
        found = states(home)
        assert found["halfway"] == found["finished"] == "training"
        assert {path.parent.name for path, _ in prunable(home)} == {"broken"}
    assert states(home)["halfway"] == "interrupted, can be resumed"


def test_list_is_a_table_for_people(home, capsys):
    assert main(["runs", "list", str(home)]) == 0
    out = capsys.readouterr().out
    [line] = [line for line in out.splitlines() if str(home / "halfway") in line]
    assert "can be resumed" in line
    assert re.search(r"\d [KM]B", line)


def test_list_shows_a_run_by_itself_and_an_empty_folder(home, tmp_path, capsys):
    assert [run.path for run in list_runs_in(home / "finished")] == [home / "finished"]
    (tmp_path / "none").mkdir()
    assert main(["runs", "list", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == f"No runs in {tmp_path / 'none'}.\n"


def test_a_broken_report_is_listed_and_not_fatal(home, capsys):
    (home / "finished" / "report.json").write_text('{"scores": {', encoding="utf-8")
    assert main(["runs", "list", str(home), "--json"]) == 0
    found = {entry["run"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert "incomplete" in found[str(home / "finished")]["state"]


@pytest.mark.parametrize("command", ["list", "prune"])
def test_a_folder_that_is_not_there_is_refused(command, tmp_path, capsys):
    assert main(["runs", command, str(tmp_path / "none")]) == 1
    told = f"{tmp_path / 'none'}: no such folder; name the one with the runs"
    assert capsys.readouterr() == ("", f"glassformer: {told}\n")


def test_a_pruned_run_still_predicts_and_evaluates_the_same(home, tmp_path, capsys):
    words = ["evaluate", str(home / "finished"), str(tmp_path / "test.csv"), "--json"]
    assert main(words) == 0
    before = json.loads(capsys.readouterr().out)
    assert main(["runs", "prune", str(home)]) == 0
    told = capsys.readouterr().out
    kept = sorted(path.name for path in (home / "finished").iterdir())
    assert not {"checkpoints", "data"} & set(kept)
    assert {"config.toml", "labels.json", "model.safetensors", "report.html"} <= set(kept)
    assert f"removed {home / 'finished' / 'checkpoints'} (" in told
    assert told.splitlines()[-1].endswith("B freed")
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out) == before | {"trained_on": None}
    assert main(["predict", str(home / "finished"), "a great film"]) == 0


def test_prune_leaves_alone_what_is_unfinished_broken_or_not_a_run(home):
    for name in ("halfway", "notes"):
        before = everything_in(home / name)
        assert main(["runs", "prune", str(home)]) == 0
        assert everything_in(home / name) == before
    assert (home / "file").exists()


def test_prune_removes_what_killed_preparations_left_and_not_what_is_alive(home):
    dead, alive = (
        home / f".new.new-0123abcd-{process}" for process in (dead_process(), os.getpid())
    )
    other = home / ".settings.new-and-good"
    for folder in (dead, alive, other):
        (folder / "data").mkdir(parents=True)
    assert main(["runs", "prune", str(home)]) == 0
    assert [folder.exists() for folder in (dead, alive, other)] == [False, True, True]


def test_prune_says_in_one_line_what_it_may_not_remove(home, capsys, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path / "latest"))

    monkeypatch.setattr(shutil, "rmtree", refuse)
    assert main(["runs", "prune", str(home)]) == 1
    path = home / "broken" / "checkpoints" / "latest"
    assert capsys.readouterr() == (
        "",
        f"glassformer: {path}: cannot be removed (Permission denied); check its permissions\n",
    )


def test_prune_removes_a_link_and_not_where_it_leads(home, tmp_path):
    shutil.move(home / "finished" / "checkpoints", tmp_path / "elsewhere")
    (home / "finished" / "checkpoints").symlink_to(tmp_path / "elsewhere")
    before = everything_in(tmp_path / "elsewhere")
    assert main(["runs", "prune", str(home)]) == 0
    assert not (home / "finished" / "checkpoints").is_symlink()
    assert everything_in(tmp_path / "elsewhere") == before


def test_prune_keeps_the_checkpoints_of_a_run_whose_model_changed(home):
    model = home / "finished" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1] + b"x")
    (home / "broken" / "checksums.json").write_text("{")
    before = everything_in(home)
    assert main(["runs", "prune", str(home)]) == 0
    assert everything_in(home) == before


def test_a_dry_prune_only_tells(home, capsys):
    before = everything_in(home)
    assert main(["runs", "prune", str(home), "--dry"]) == 0
    out = capsys.readouterr().out
    assert f"would remove {home / 'finished' / 'checkpoints'} (" in out
    assert out.splitlines()[-1].endswith("B would be freed")
    assert everything_in(home) == before


# Help


def commands(group, *names):
    """Every command with the words that call it."""
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, *names, name)
        else:
            yield (*names, name)


COMMANDS = list(commands(typer.main.get_command(app.app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_in_its_help(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*words, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Example: glassformer {' '.join(words)}" in " ".join(out.split())


def test_the_commands_of_the_contract_are_there():
    wanted = {("train",), ("resume",), ("predict",), ("evaluate",)}
    assert wanted | {("runs", "list"), ("runs", "prune")} <= set(COMMANDS)


def test_help_of_train_answers_at_once_and_without_torch():
    code = (
        "import sys; from glassformer.cli import main; main(['train', '--help']); "
        "sys.exit('torch' in sys.modules)"
    )
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0, done.stderr
        assert "--no-pretrain" in done.stdout
    assert min(times) < 0.8  # of processor time, whatever else the machine does


def test_runs_in_subfolders_are_listed_but_what_lies_in_a_run_is_not(tmp_path):
    for name in ("one", "demo/films", "demo/more/tones", "demo/films/checkpoints/step-1", ".old/x"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.toml").write_text('job = "classify"\n')
    found = [str(run.path.relative_to(tmp_path)) for run in list_runs_in(tmp_path)]
    assert found == ["demo/films", "demo/more/tones", "one"]
    assert not list(prunable(tmp_path))
