"""Back-translation: texts of the target language, with sources that another run writes for them.

What is to be written is real, what is read is made up, and a translator learns to write from it all
the same (Sennrich et al., 2015). It is added to the training part alone, and stays in the run.
"""

import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.intake import Seen, Skipped, Taken, open_rows
from glassformer.data.samples import PARTS, Sample, Samples
from glassformer.data.splits import content_key
from glassformer.errors import GlassformerError
from glassformer.runs.display import Display
from glassformer.runs.run import Run
from glassformer.tasks.pair_batch import right_answers
from glassformer.tasks.pair_tokens import targets_named
from glassformer.tasks.translate_settings import TranslateConfig


@dataclass(slots=True)
class BackTranslated:
    """What was added: rows written by a run, and lines left out, by reason."""

    files: tuple[str, ...]
    by: str
    rows: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def skip(self, reason: str, where: str) -> None:
        """Leave a line out."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1

    def sentences(self) -> list[str]:
        """What was done, for a person."""
        texts = f"back-translations of {', '.join(self.files)}"
        return [f"{self.rows:,} training rows were added, {texts} by {self.by}"] + [
            f"not back-translated: {entry.count:,} lines with {reason}, first {entry.first}"
            for reason, entry in self.skipped.items()
        ]


def add_back_translations(
    config: Config, samples: Samples, taken: Taken, display: Display
) -> tuple[Samples, list[str]]:
    """The samples, with back-translations in the training part where they are asked for.

    Returns what was done in sentences, too; what was taken in grows by it.
    """
    task = config.task
    if not isinstance(task, TranslateConfig) or task.backward is None:
        return samples, []
    if languages := targets_named(samples):
        raise GlassformerError(
            f"task.monolingual is for one target language, but the data name "
            f"{', '.join(sorted(languages))}; leave it out, or train without the column of `to`"
        )
    run = Run(task.backward, device=config.machine.device)
    if run.config.job != "translate":
        raise GlassformerError(
            f"{task.backward}: does {run.config.job}; name in task.backward a run that translates "
            f"from the target language to the source's"
        )
    made = BackTranslated(task.monolingual, task.backward)
    with display.counting("back-translating") as seen:
        lines = lines_to_write(config, samples, made)
        samples = extended(samples, written_back(run, lines, made, seen))
    taken.counts["train"] += made.rows
    for sentence in made.sentences():
        display.say(sentence)
    return samples, made.sentences()


def lines_to_write(
    config: Config, samples: Samples, made: BackTranslated
) -> Iterator[tuple[str, str]]:
    """Where each line stands, and the line; what is held out to be scored on is left out."""
    held_out = {
        content_key(target)
        for part in ("valid", "test")
        for sample in samples.of(part)
        for target in right_answers(sample)
    }
    for name in made.files:
        settings = DataConfig(encoding=config.data.encoding)
        rows, columns = open_rows(name, settings, ("text",), "train")
        for row in rows:
            text = str(row[columns["text"]]).strip()
            if not text:
                made.skip("no text", row.where)
            elif content_key(text) in held_out:
                made.skip("a target that is held out", row.where)
            else:
                yield row.where, text


def written_back(
    run: Run, lines: Iterable[tuple[str, str]], made: BackTranslated, seen: Seen
) -> Iterator[Sample]:
    """Pairs of what the run writes for each line, and the line."""
    asked: deque[tuple[str, str]] = deque()

    def texts() -> Iterator[str]:
        for line in lines:
            asked.append(line)
            yield line[1]

    for found in run.predict_each(texts()):
        where, text = asked.popleft()
        if found.text.strip():
            made.rows += 1
            seen(made.rows)
            yield {"where": where, "source": found.text, "target": text}
        else:
            made.skip("no answer", where)


def extended(samples: Samples, more: Iterable[Sample]) -> Samples:
    """The samples with more of them in the training part, in the place of the old ones."""
    place, new = samples.folder, samples.folder.with_name(f"{samples.folder.name}.new")
    new.mkdir()
    grown = Samples.write(new, (("train", sample) for sample in chain(samples, more)))
    parts = np.full(len(grown), PARTS.index("train"), dtype=np.uint8)
    parts[: len(samples)] = samples.parts
    Samples.assign(new, parts)
    shutil.rmtree(place)
    new.rename(place)
    return Samples.open(place)
