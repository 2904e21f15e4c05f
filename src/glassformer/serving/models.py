"""The runs that are served, each by the name of its folder, and how one is replaced by a newer one.

A run is loaded beside the one that it replaces. Requests that come afterwards go to the new one;
those that were accepted before are finished by the old one, which then goes.
"""

import asyncio
import gc
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from glassformer.engine import can_page
from glassformer.errors import GlassformerError, unknown
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import Classifier, LanguageModel, Transformer
from glassformer.runs.in_training import is_in_training
from glassformer.runs.run import Run
from glassformer.serving.batching import Batcher, Options
from glassformer.serving.cancelling import end_when_cancelled
from glassformer.serving.errors import RefusedError
from glassformer.serving.generation import Generator
from glassformer.serving.metrics import Metrics
from glassformer.serving.schemas import is_remote
from glassformer.serving.settings import Batching, EngineMemory, ServeConfig
from glassformer.serving.sources import SourceAnswers
from glassformer.serving.threads import Threads, vectors_of
from glassformer.serving.worker import Worker
from glassformer.tasks import JOBS
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.served import (
    Embedder,
    ImageReader,
    NameReader,
    SourceWriter,
    SpeechWriter,
    TokenWriter,
)
from glassformer.tasks.shared.sound_predictor import SoundPredictor
from glassformer.tasks.shared.text import TextPredictor
from glassformer.training.memory import trim_heap

log = logging.getLogger(__name__)
Vector = Float[np.ndarray, " D"]


class ServedModel:
    """A run, and those that answer its requests.

    Attributes:
        predictions: Answers inputs with predictions, in batches.
        sources: Answers inputs with predictions, through the engine, if a decoder writes them.
        embeddings: Answers texts with vectors, if the run has some.
        explanations: Answers inputs with what their predictions are based on, one at a time.
        generator: Writes token by token, if the run does.
    """

    def __init__(
        self, name: str, run: Run, worker: Worker, config: ServeConfig, metrics: Metrics
    ) -> None:
        self.name, self.run, self.job = name, run, run.config.job
        self.created = int(time.time())
        self.predictor = run.predictor
        if not (self.reads_text or self.reads_sound or self.reads_images):
            raise GlassformerError(
                f"{run.folder.path}: cannot be served: job {run.config.job!r} has an unsupported "
                f"input type; use `glassformer predict`"
            )
        observe = metrics.batch_inputs.labels(name).observe
        batching, brief = config.batching, self._is_brief
        self.predictions = Batcher(worker, self._predict, batching, observe, brief)
        self.embeddings = Batcher(worker, self._embed, batching, observe, brief)
        self.explanations = Batcher(worker, self._explain, Batching(wait=0.0, most=1))
        self.model = run.fast_model.eval()
        self.threads = Threads(self.model)
        end_when_cancelled(run.model, self.model)
        self.generator = self._generator(worker, config.engine)
        self.sources: SourceAnswers | None = None
        if self.generator is not None and isinstance(self.predictor, SourceWriter):
            self.sources = SourceAnswers(self.generator, run, self.model)

    def _generator(self, worker: Worker, memory: EngineMemory) -> Generator | None:
        """What writes token by token, if the run does."""
        model, writer = self.model, self.predictor
        if isinstance(writer, SourceWriter):
            if not isinstance(model, Transformer | Transcriber) or not writer.uses_decoder:
                return None
            if model.decoder is None or not can_page(model.decoder):
                return None
            return Generator(worker, model, memory, self._inference, self.threads)
        if not isinstance(writer, TokenWriter):
            return None
        if not isinstance(model, LanguageModel) or not can_page(model.decoder):
            raise GlassformerError(
                f"{self.run.folder.path}: its decoder does not keep keys and values, as the engine "
                f"of `serve` requires; train a run with --set "
                f"model.decoder.attention.kind=softmax, or use `glassformer predict "
                f"{self.run.folder.path}`"
            )
        return Generator(worker, model, memory, self._inference, self.threads)

    async def predict(
        self, inputs: list[Any], options: Options, check: Callable[[Sequence[Any]], None]
    ) -> list[Prediction]:
        """The predictions for the inputs of one request."""
        return await (self.sources or self.predictions).answers(inputs, options, check)

    @cached_property
    def forms(self) -> list[str]:
        """The paths that it answers."""
        found = []
        if self.writes_tokens:
            found.append("/v1/completions")
        elif self.writes_speech:
            found.append("/v1/audio/transcriptions")
        else:
            found.append(f"{self.root}{self.job}")
        if JOBS[self.job].explainer is not None:
            found.append(f"{self.root}explain")
        return found + (["/v1/embeddings"] if self.embeds else [])

    @property
    def writes_tokens(self) -> bool:
        """Whether it continues texts token by token."""
        return isinstance(self.predictor, TokenWriter)

    @property
    def writes_speech(self) -> bool:
        """Whether it writes down speech."""
        return isinstance(self.predictor, SpeechWriter)

    @property
    def reads_sound(self) -> bool:
        """Whether its inputs are recordings."""
        return isinstance(self.predictor, SoundPredictor)

    @property
    def reads_images(self) -> bool:
        """Whether its inputs are pictures."""
        return isinstance(self.predictor, ImageReader)

    @property
    def reads_text(self) -> bool:
        """Whether its inputs are texts, or names."""
        return isinstance(self.predictor, TextPredictor | NameReader)

    @property
    def root(self) -> str:
        """What the paths of its kind of inputs begin with."""
        if self.reads_images:
            return "/v1/images/"
        return "/v1/audio/" if self.reads_sound else "/v1/"

    @property
    def embeds(self) -> bool:
        """Whether it turns texts into vectors."""
        return isinstance(self.predictor, Embedder)

    def values(self) -> dict[str, Any]:
        """What a list of models says about it."""
        return {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "glassformer",
            "job": self.job,
            "paths": self.forms,
            "options": [one.name for one in JOBS.about(self.job).options if is_remote(one)],
        }

    def _predict(self, inputs: list[Any], options: dict[str, Any]) -> list[Prediction]:
        predictor = self.run.configured(**options)
        self.threads.choose(vectors_of(inputs))
        with torch.inference_mode(), self.run.machine.autocast():
            found = predictor.predict(self.model, [*map(predictor.accept, inputs)])
            return [one for one in found if isinstance(one, Prediction)]

    def _embed(self, inputs: list[str], options: dict[str, Any]) -> list[tuple[Vector, int]]:
        """The vector of each text, and the number of its tokens."""
        assert isinstance(self.predictor, Embedder)
        assert isinstance(self.predictor, TextPredictor)
        self.threads.choose(vectors_of(inputs))
        with self._inference():
            vectors = self.predictor.unit_vectors(self.model, inputs)
        return list(zip(vectors, map(self.predictor.tokens_of, inputs), strict=True))

    def _is_brief(self, inputs: list[Any]) -> bool:
        """Whether the event loop may compute these: few short texts, read once on a CPU."""
        once = self.reads_text and isinstance(self.model, Classifier)
        on_cpu = self.run.machine.device.type == "cpu"
        return once and on_cpu and self.threads.is_brief(vectors_of(inputs))

    def _explain(self, inputs: list[Any], options: dict[str, Any]) -> list[dict[str, Any]]:
        """Explanations as `glassformer explain` gives them: the first measures which to trust."""
        packed = options.pop("packed", False)
        torch.set_num_threads(self.threads.most)
        found = (self.run.explain(given, keep=False, **options) for given in inputs)
        return [one.as_packed() if packed else one.as_values() for one in found]

    @contextmanager
    def _inference(self) -> Iterator[None]:
        with torch.no_grad(), self.run.machine.autocast():
            yield


class Models:
    """All served models, by name.

    Args:
        paths: Run folders.

    Attributes:
        training: Those that have no model yet.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        worker: Worker,
        config: ServeConfig,
        metrics: Metrics,
        *,
        device: str = "auto",
    ) -> None:
        self.worker, self.config, self.metrics, self.device = worker, config, metrics, device
        found = by_name(paths)
        self.training = {name: path for name, path in found.items() if is_in_training(path)}
        self.paths = {name: path for name, path in found.items() if name not in self.training}
        self.served = {name: self._load(name) for name in self.paths}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self.served.values())

    def named(self, name: str) -> ServedModel:
        """The model of that name, refused if there is none."""
        model = self.served.get(name)
        if model is None and name in self.training:
            message = f"{name} has no trained model yet; /v1/training/{name} shows how far it is"
            raise RefusedError(404, message, code="model_not_found", param="model")
        if model is None:
            message = unknown("model", name[:100], self.served)
            raise RefusedError(404, message, code="model_not_found", param="model")
        return model

    def find(self, name: str, path: str) -> ServedModel:
        """The model of that name, refused if it does not answer this path, too."""
        model = self.named(name)
        if path not in model.forms:
            raise RefusedError(
                422,
                f"{name} does not answer {path}; ask it at {' or '.join(model.forms)}",
                code="model_mismatch",
                param="model",
            )
        return model

    async def reload(self, name: str) -> ServedModel:
        """Replace a model by what is in its folder now; if that fails, the old one stays."""
        old = self.served[name]
        new = await asyncio.to_thread(self._load, name)
        if new.job != old.job:
            raise GlassformerError(
                f"{self.paths[name]}: its job is {new.job}, but was {old.job}; start the server "
                f"again"
            )
        self.served[name] = new
        del old
        await asyncio.to_thread(give_back_memory)
        return new

    async def admit(self, name: str) -> None:
        """Serve a run whose training has ended."""
        self.served[name] = await asyncio.to_thread(self._load, name)
        self.paths[name] = self.training.pop(name)

    def _load(self, name: str) -> ServedModel:
        """The model in a folder; whatever is wrong with it stops nothing else."""
        path = self.paths.get(name) or self.training[name]
        try:
            run = Run(path, device=self.device)
            return ServedModel(name, run, self.worker, self.config, self.metrics)
        except GlassformerError:
            raise
        except Exception as error:
            log.error("%s cannot be loaded", path, exc_info=error)
            reason = str(error) or type(error).__name__
            raise GlassformerError(
                f"{path}: cannot be loaded ({reason}); copy the run again, or train it again"
            ) from None


def give_back_memory() -> None:
    """Free models that were replaced, and the gaps that they leave in the heap of a CPU."""
    gc.collect()  # a model and what answers its requests know each other
    trim_heap(torch.device("cpu"))


def by_name(paths: Sequence[Path]) -> dict[str, Path]:
    """Run folders by the names that clients call them.

    >>> by_name([Path("runs/dates/")])
    {'dates': PosixPath('runs/dates')}
    """
    found: dict[str, Path] = {}
    for path in paths:
        name = Path(os.path.abspath(path)).name  # of a link, its own: it may lead elsewhere later
        if name in found:
            raise GlassformerError(
                f"{path}: another run is called {name}, too; rename one of the folders"
            )
        found[name] = path
    return found
