"""A plan with back-translations: a few lines are written, all of them are counted."""

import pytest
from quick import quickly
from small_translators import SETTINGS, translate, write_pairs

from glassformer.runs import api, plan as planning
from glassformer.tasks.translate import back_translation
from glassformer.tasks.translate.back_translation import BackTranslated, Rehearsal
from glassformer.tasks.translate.predictor import TranslatePredictor
from glassformer.tasks.translate.reporter import TranslateReporter

pytestmark = pytest.mark.usefixtures("without_shape_hook")
LINES, TRIED = 53, 5


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(back_translation, "AT_A_TIME", TRIED)
    monkeypatch.setattr(planning, "LONGEST_TRY", 1e-9)
    with quickly():
        yield


@pytest.fixture
def written(monkeypatch):
    """The lines that a run was asked to translate."""
    seen = []
    predict = TranslatePredictor.predict

    def watched(self, model, inputs):
        seen.extend(inputs)
        return predict(self, model, seen[-TRIED:])

    monkeypatch.setattr(TranslatePredictor, "predict", watched)
    return seen


def test_a_plan_writes_few_lines_back_and_counts_all(tmp_path, monkeypatch, written, capsys):
    monkeypatch.chdir(tmp_path)
    data = write_pairs(tmp_path / "pairs.tsv", 97)
    translate(write_pairs(tmp_path / "turned.tsv", turned=True), tmp_path / "back", steps=1)
    lines = [f"{'abcdef'[n % 6]}{n}" for n in range(LINES)]
    (tmp_path / "more.txt").write_text("\n".join(lines), encoding="utf-8")
    usual = {"epochs": 10, "quiet": True}
    small = (*SETTINGS, "data.batch_tokens=256")
    plain = planning.plan("translate", data, settings=small, **usual)
    more = ("task.monolingual=more.txt", "task.backward=back")
    found = planning.plan("translate", data, settings=(*small, *more), epochs=10)
    assert f"{LINES} training rows would be added, back-trans" in capsys.readouterr().err
    assert written == lines[:TRIED]
    assert found.work.tokens_an_epoch > plain.work.tokens_an_epoch + 3 * LINES
    assert found.work.steps > plain.work.steps
    said = f"Back-translations are estimated from {TRIED} of {LINES} lines."
    assert said in found.notes
    assert not [note for note in plain.notes if "Back-translations" in note]


def test_the_time_of_the_other_lines_follows_from_those_that_are_tried(monkeypatch):
    now = iter([0.0, 2.0])
    monkeypatch.setattr(back_translation.time, "perf_counter", lambda: next(now))

    def write(run, lines, made, seen):
        yield from ({"where": w, "source": text.upper(), "target": text} for w, text in lines)

    monkeypatch.setattr(back_translation, "written_back", write)
    tried, made = Rehearsal(1e-9), BackTranslated((), "")
    lines = [(f"row {n}", f"t{n}") for n in range(3 * TRIED)]
    rows = list(tried.written_back(None, iter(lines), made, lambda count: None))
    assert [row["target"] for row in rows] == [text for _, text in lines]
    assert [row["source"] for row in rows] == [f"T{n % TRIED}" for n in range(3 * TRIED)]
    assert (tried.seconds, tried.lines) == (4.0, 3 * TRIED)


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
