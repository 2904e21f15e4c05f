"""`listen`: frames of sound in, letters out, and a CTC loss, which needs no times to learn from.

Graves et al., "Connectionist Temporal Classification", 2006.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config.run import Config
from glassformer.core.layout import Layout
from glassformer.data.batches import row_rng
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.models.build import build_encoder
from glassformer.models.transformer import Noise
from glassformer.tasks.job import JobTask
from glassformer.tasks.task import Loss
from tones.model import Listener, Spectrum
from tones.sound import read_sound
from tones.words import Words

BLANK = 0  # the letter that is none

Sound = Float[np.ndarray, " _"]  # no name: each has its own length


@dataclass(frozen=True, slots=True)
class Recordings:
    """Some recordings in frames, and the letters of their words end to end."""

    samples: Float[Tensor, "B T W"]
    layout: Layout
    words: Sequence[str]
    letters: Int[Tensor, " letters"]
    counts: Int[Tensor, " B"]
    row_ids: Int[Tensor, " B"]

    @property
    def tokens(self) -> int:
        """How many frames there are, without padding."""
        assert self.layout.tokens is not None
        return self.layout.tokens

    def to(self, device: torch.device) -> "Recordings":
        """The same on another device."""
        moved = (one.to(device) for one in (self.letters, self.counts, self.row_ids))
        return Recordings(self.samples.to(device), self.layout.to(device), self.words, *moved)


@dataclass(frozen=True, slots=True)
class Heard:
    """The letters of a recording, the frame where each begins, and how sure the model is of all."""

    letters: list[int]
    frames: list[int]
    confidence: float


class ListenTask(JobTask[Recordings, Tensor, Words]):
    """Recordings and their words."""

    name = "listen"
    goal = "cer"
    higher_is_better = False
    perfect = 0.0
    default_epochs = 30.0

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.alphabet: str = read_json(folder / "alphabet.json")["letters"]
        self.samples = None
        if data is not None:
            self.samples, self.sounds = Samples.open(data), Ragged.open(data / "sounds")

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        letters = sorted({letter for sample in samples.of("train") for letter in sample["text"]})
        write_json({"letters": "".join(letters)}, folder / "alphabet.json")
        assert config.model.encoder is not None
        encoder = replace(config.model.encoder, max_length=config.task.longest)
        return replace(config, model=replace(config.model, encoder=encoder))

    def index(self, samples: Samples, data: Path) -> None:
        rows = (self.read(Path(sample["path"])) for sample in samples)
        Ragged.write(data / "sounds", rows, np.float32)

    def read(self, path: Path) -> Sound:
        """A recording, refused where it is too long."""
        sound, longest = read_sound(path, self.settings.rate), self.settings.longest
        if not 0 < len(sound) <= longest * self.settings.frame:
            raise GlassformerError(
                f"{path}: {len(sound)} samples, which are not 1 to {longest} frames; cut it, or "
                f"train with --set task.longest=N"
            )
        return sound

    def model(self) -> Listener:
        stack = self.config.model.encoder
        assert stack is not None
        frontend = Spectrum(self.settings.frame, stack.dim)
        return Listener(frontend, build_encoder(stack), len(self.alphabet) + 1)

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        return -(-self.sounds.lengths[self.samples.rows(split)] // self.settings.frame)

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> Recordings:
        assert self.samples is not None
        numbers = self.samples.rows(split)[rows].tolist()
        words = [self.samples[number]["text"] for number in numbers]
        sounds = [self.sounds[number] for number in numbers]
        if epoch is not None:
            rngs = [row_rng(self.config.seed, epoch, number) for number in numbers]
            loud = [np.float32(rng.uniform(1 - self.settings.quieter, 1)) for rng in rngs]
            sounds = [sound * volume for sound, volume in zip(sounds, loud, strict=True)]
        return self.recordings(sounds, words, rows)

    def recordings(
        self, sounds: Sequence[Sound], words: Sequence[str], rows: Int[np.ndarray, " B"]
    ) -> Recordings:
        """A batch of sounds; a letter that was not there to learn counts as the first one."""
        width = self.settings.frame
        layout = Layout.padded([-(-len(sound) // width) for sound in sounds])
        samples = torch.zeros(len(sounds), layout.longest * width)
        for row, sound in enumerate(sounds):
            samples[row, : len(sound)] = torch.from_numpy(np.array(sound))
        letters = [max(0, self.alphabet.find(letter)) + 1 for word in words for letter in word]
        return Recordings(
            samples.unflatten(1, (-1, width)),
            layout,
            words,
            torch.tensor(letters, dtype=torch.long),
            torch.tensor([len(word) for word in words]),
            torch.from_numpy(rows),
        )

    def forward(
        self, model: nn.Module, batch: Recordings, *, noise: Noise | None = None
    ) -> Float[Tensor, "B T V"]:
        return model(batch.samples, layout=batch.layout, noise=noise).float().log_softmax(-1)

    def loss(self, output: Float[Tensor, "B T V"], batch: Recordings) -> Loss:
        total = F.ctc_loss(
            output.transpose(0, 1),
            batch.letters,
            batch.layout.lengths,
            batch.counts,
            blank=BLANK,
            reduction="sum",
            zero_infinity=True,  # a word with more letters than frames
        )
        return Loss(total, batch.counts.sum().float())

    def divergence(
        self, a: Float[Tensor, "B T V"], b: Float[Tensor, "B T V"], batch: Recordings
    ) -> Loss:
        apart = (a.exp() * (a - b)).sum(-1)[batch.layout.real]
        return Loss(apart.sum(), batch.counts.sum().float())

    def answers(self, model: nn.Module, batches: Iterable[Recordings]) -> Words:
        """What is written for the rows of these batches, in the order of the rows."""
        found: dict[int, tuple[str, str]] = {}
        for batch in batches:
            heard = (self.spelt(one.letters) for one in self.heard(model, batch))
            found |= zip(batch.row_ids.tolist(), zip(heard, batch.words, strict=True), strict=True)
        pairs = [found[row] for row in sorted(found)]
        return Words([written for written, _ in pairs], [right for _, right in pairs])

    def heard(self, model: nn.Module, batch: Recordings) -> list[Heard]:
        """The likeliest letter of every frame, each run of equal ones once, without the blanks."""
        best = self.forward(model, batch).max(-1)
        rows = zip(best.values, best.indices.tolist(), batch.layout.lengths.tolist(), strict=True)
        found = []
        for sure, letters, length in rows:
            before = [BLANK, *letters]
            starts = [at for at in range(length) if letters[at] not in (BLANK, before[at])]
            mean = float(sure[:length].mean().exp())
            found.append(Heard([letters[at] for at in starts], starts, mean))
        return found

    def spelt(self, letters: Iterable[int]) -> str:
        """Letters as a word."""
        return "".join(self.alphabet[letter - 1] for letter in letters)

    def score(self, model: nn.Module, batches: Iterable[Recordings]) -> dict[str, float]:
        found = self.answers(model, batches).measurements
        return {name: one.score().value for name, one in found.items()}
