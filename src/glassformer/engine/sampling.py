"""The next token of many requests, each with its own settings, in few calls and without waiting."""

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._triton import has_triton

from glassformer.core.caches.paged import to_device
from glassformer.decode.request import Request
from glassformer.decode.rules import Length, build_rules, scores_for_rules
from glassformer.decode.scorer import log_probabilities
from glassformer.decode.stepwise import choose_tokens
from glassformer.decode.topk import topk
from glassformer.engine.generation import Alternatives, Generation, GenerationRequest, Settings

Scores = Float[Tensor, "B 1 V"]


@dataclass(frozen=True, eq=False, slots=True)
class Chosen:
    """The tokens that were chosen for some requests, on their way from the device.

    Attributes:
        tokens, scores: Each request's token, and its log-probability.
        likeliest: The likeliest tokens of each and their log-probabilities, as many as any asks
            for; None if none does.
        ready: When all of it has arrived; None if it is there.
    """

    generations: Sequence[Generation]
    tokens: Int[Tensor, " B"]
    scores: Float[Tensor, " B"]
    likeliest: tuple[Int[Tensor, "B A"], Float[Tensor, "B A"]] | None
    ready: torch.cuda.Event | None

    def read(self) -> list[tuple[Generation, int, float, Alternatives]]:
        """Each request with its token, once they are there."""
        if self.ready is not None:
            self.ready.synchronize()
        others: Sequence[Alternatives] = [()] * len(self.generations)
        if self.likeliest is not None:
            lines = zip(*(of_all.tolist() for of_all in self.likeliest), strict=True)
            counts = [one.settings.decode.alternatives for one in self.generations]
            others = [
                tuple(zip(tokens[:count], values[:count], strict=True))
                for (tokens, values), count in zip(lines, counts, strict=True)
            ]
        chosen = self.tokens.tolist(), self.scores.tolist()
        return list(zip(self.generations, *chosen, others, strict=True))


class Chooser:
    """Chooses tokens by the settings of each request.

    Args:
        device: Of the scores.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.has_kernel = device.type == "cuda" and has_triton()
        self._known: WeakValueDictionary[object, Settings] = WeakValueDictionary()

    def settings(self, request: GenerationRequest) -> Settings:
        """The settings of a request; the same object for all that choose alike."""
        config, sample = request.decode, request.decode.sample
        filters = sample.temperature, sample.top_k, sample.top_p, sample.min_p, sample.typical
        rules = config.min_length, config.repetition, config.no_repeat, request.forbidden
        key = config.method, filters, rules, config.alternatives, request.end
        found = self._known.get(key)
        if found is None:
            asked = Request(end=request.end, forbidden=request.forbidden)
            every = build_rules(asked, config, 1, self.device).rules
            steady = tuple(rule for rule in every if rule.steady)
            by_history = any(not rule.steady and not isinstance(rule, Length) for rule in every)
            found = self._known[key] = Settings(config, steady, by_history)
        return found

    def choose(
        self, scores: Float[Tensor, "B V"], generations: Sequence[Generation]
    ) -> tuple[Int[Tensor, " B"], Chosen]:
        """The next token of each request, -1 if none is left: on the device, and on their way."""
        kinds = {one.settings for one in generations}
        likeliest = None
        if self.has_kernel and len(kinds) == 1 and generations[0].settings.plain:
            tokens, found = self._greedy(scores, generations)
        else:
            scores = scores[:, None]  # (B, 1, V)
            log_probs = log_probabilities(scores)
            tokens = self._by_kind(scores, log_probs, generations, kinds)
            found = log_probs[:, 0].gather(-1, tokens.clamp(min=0)[:, None])[:, 0]
            if most := max(kind.decode.alternatives for kind in kinds):
                values, others = topk(log_probs[:, 0], most)
                likeliest = to_host(others), to_host(values)
        arriving = to_host(tokens), to_host(found)
        return tokens, Chosen(generations, *arriving, likeliest, arrival(self.device))

    def _greedy(
        self, scores: Float[Tensor, "B V"], generations: Sequence[Generation]
    ) -> tuple[Int[Tensor, " B"], Float[Tensor, " B"]]:
        """The likeliest tokens, without the probabilities of all others, and theirs."""
        from glassformer.decode.greedy_kernel import likeliest

        scores = scores.float()
        return likeliest(scores, self._allowed(scores[:, None], generations)[:, 0])

    def _by_kind(
        self,
        scores: Scores,
        log_probs: Scores,
        generations: Sequence[Generation],
        kinds: set[Settings],
    ) -> Int[Tensor, " B"]:
        """The next tokens, together for all requests that choose alike."""
        if len(kinds) == 1:
            return self._chosen(scores, log_probs, generations)
        tokens = torch.empty(len(generations), dtype=torch.long, device=self.device)
        for kind in kinds:
            rows = [row for row, one in enumerate(generations) if one.settings is kind]
            at = to_device(rows, self.device)
            alike = [generations[row] for row in rows]
            tokens[at] = self._chosen(scores[at], log_probs[at], alike)
        return tokens

    def _chosen(
        self, scores: Scores, log_probs: Scores, generations: Sequence[Generation]
    ) -> Int[Tensor, " B"]:
        """The tokens of requests with the same settings."""
        config = generations[0].settings.decode
        allowed = self._allowed(scores_for_rules(scores, log_probs, config), generations)
        if config.method == "greedy":
            values, tokens = topk(allowed[:, 0], 1)
            return tokens.masked_fill(values == -torch.inf, -1)[:, 0]
        seeds = [one.request.seed for one in generations]
        steps = [one.chosen for one in generations]
        noise = to_device([seeds, steps], self.device)
        return choose_tokens(allowed, noise[0], noise[1], config)[:, 0]

    def _allowed(self, scores: Scores, generations: Sequence[Generation]) -> Scores:
        """Scores under the rules of these requests, which have the same settings.

        Steady rules are called once for all, and `Length` is here for rows at different steps; with
        rules that need the tokens before, each row is by itself.
        """
        settings = generations[0].settings
        if settings.by_history:
            rows = [
                ruled(scores[row : row + 1], one, self.device)
                for row, one in enumerate(generations)
            ]
            return torch.cat(rows)
        nothing = torch.empty(len(scores), 1, 0, dtype=torch.long, device=self.device)
        for rule in settings.steady:
            scores = rule(scores, nothing)
        shortest, end = settings.decode.min_length, generations[0].request.end
        short = [row for row, one in enumerate(generations) if one.chosen < shortest]
        if short and end >= 0:
            scores = scores.clone()
            scores[to_device(short, self.device), :, end] = -torch.inf
        return scores


def ruled(scores: Float[Tensor, "1 1 V"], generation: Generation, device: torch.device) -> Tensor:
    """The scores of one request under its rules."""
    request = generation.request
    whole = Request(end=request.end, prompts=[request.prompt], forbidden=request.forbidden)
    rules = build_rules(whole, generation.settings.decode, 1, device)
    return rules(scores, to_device(generation.generated, device)[None, None])


def to_host(values: Tensor) -> Tensor:
    """A copy on the host, which is complete only once the device has come to it."""
    if not values.is_cuda:
        return values
    room = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    return room.copy_(values, non_blocking=True)


def arrival(device: torch.device) -> torch.cuda.Event | None:
    """When the device will have done all that it was told so far; None if it has."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()
    event.record()
    return event
