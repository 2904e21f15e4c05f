"""A plan with back-translations, which are left out and named."""

import pytest
from quick import quickly
from small_translators import SETTINGS, translate, write_pairs

from glassformer.runs import api, plan as planning
from glassformer.tasks.translate.reporter import TranslateReporter

pytestmark = pytest.mark.usefixtures("without_shape_hook")


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


def test_a_plan_leaves_out_back_translations_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = write_pairs(tmp_path / "pairs.tsv", 97)
    settings = (*SETTINGS, "task.monolingual=more.txt", "task.backward=back")
    found = planning.plan("translate", data, set=settings, epochs=1, quiet=True)
    assert "Not included: training rows made with back." in found.notes


def test_scores_of_long_sentences_take_their_time(tmp_path):
    rows = [f"{n} a b c\t{n} {'x ' * 9}" for n in range(60)]
    (tmp_path / "pairs.tsv").write_text("source\ttarget\n" + "\n".join(rows), encoding="utf-8")
    run = translate(tmp_path / "pairs.tsv", tmp_path / "run", "task.measure=text", steps=1)
    job = api.load(run.folder.path).folder.open_task(run.config, run.folder.data)
    seconds = TranslateReporter(job).baseline_seconds()
    job.settings = type(job.settings)(measure="letters")
    tested = len(job.lengths("test"))
    more = seconds - TranslateReporter(job).baseline_seconds()
    assert more == pytest.approx(2 * 1.3e-6 * tested * 10**3)
