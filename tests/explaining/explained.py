"""Explanations made by hand, one for each kind of picture, as realistic as they need to be."""

import math
from dataclasses import replace

import torch

from glassformer.explaining.explanation import Explanation
from glassformer.explaining.parts import AttentionMap, Branch, Neighbour, Sound, Target

VERDICT = "Better than chance by 0.21 [0.18, 0.24] on 200 validation rows."
REVIEW = (
    "A quiet, wonderful film: the two leads are superb, and although the middle drags and the "
    "music is dull, the ending moved me to tears."
)
STRONG = {"wonderful": 0.41, "superb,": 0.33, "moved": 0.18, "tears.": 0.12, "quiet,": 0.09,
          "drags": -0.27, "dull,": -0.35, "although": -0.1}  # fmt: skip
REVIEWS = {
    "en": REVIEW,
    "zh": "这部电影非常好看，两位主角的表演也很出色，只是音乐有点无聊。",
    "ar": "فيلم رائع وهادئ، والممثلان مدهشان، لكن الموسيقى مملة قليلا في New York City.",
}
HOSTILE = "</script><script>alert()</script><!-- & \u2028 '\"${x}` {0} <img src=x onerror=alert()>."


def words_of(text):
    """Words with the space after them."""
    words = text.split(" ")
    return (*(f"{word} " for word in words[:-1]), words[-1])


def attention(name, queries, keys, *, heads=3, seed=0, sharp=3.0, causal=False):
    generator = torch.Generator().manual_seed(seed)
    scores = sharp * torch.randn(heads, len(queries), len(keys), generator=generator)
    places = torch.arange(len(queries))[:, None] * len(keys) / len(queries)
    distance = (places - torch.arange(len(keys))).abs()
    scores -= distance * torch.linspace(0.1, 1.5, heads)[:, None, None]
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores[0]).triu(1).bool(), -math.inf)
    return AttentionMap(
        name=name, queries=tuple(queries), keys=tuple(keys), weights=scores.softmax(-1)
    )


def review(language="en"):
    """A classified review, in three scripts."""
    text = REVIEWS[language]
    pieces = tuple(text) if language == "zh" else words_of(text)
    generator = torch.Generator().manual_seed(3)
    noise = 0.06 * torch.randn(len(pieces), generator=generator)
    known = [STRONG.get(piece.strip(), 0.0) for piece in pieces]
    towards = (
        noise
        + torch.tensor(known)
        + (torch.rand(len(pieces), generator=generator) - 0.4) * (language != "en")
    )
    tokens = ["<s>", *(piece.strip() for piece in pieces)]
    return Explanation(
        job="classify",
        given=text,
        answer="positive",
        pieces=pieces,
        targets=(
            Target(text="positive", probability=0.93),
            Target(text="negative", probability=0.07),
        ),
        influence=torch.stack([towards, -towards]),
        method="integrated gradients",
        verdict=VERDICT,
        attention=tuple(
            attention(f"encoder.blocks.{n}.attention", tokens, tokens, seed=n) for n in range(2)
        ),
        neighbours=(
            Neighbour(where="data/train.csv, row 131", text="A wonderful, quiet little film.",
                      target="positive", similarity=0.93),
            Neighbour(where="train.csv, row 7002", text="Superb leads, dull music.",
                      target="negative", similarity=0.88),
        ),
    )  # fmt: skip


def translation(source=("早上", "好", "！", "你", "睡", "得", "好", "吗", "？"),
                target=("Good", "morning", "!", "Did", "you", "sleep", "well", "?")):  # fmt: skip
    """A translation, with its beam."""
    matches = [1, 0, 2, 7, 3, 4, 6, 8][: len(target)]
    weights = torch.full((4, len(target), len(source)), 0.03)
    for word, place in enumerate(matches):
        weights[:, word, place % len(source)] = torch.tensor([0.8, 0.5, 0.3, 0.1])
    weights /= weights.sum(-1, keepdim=True)
    crossing = [
        AttentionMap(name=f"decoder.blocks.{n}.cross_attention", queries=target, keys=source,
                     weights=weights.roll(n, 0))
        for n in range(2)
    ]  # fmt: skip
    influence = weights[0] - 0.05
    targets = tuple(
        Target(text=word if not n else f" {word}", probability=0.95 - 0.09 * (n % 4),
               alternatives=((f" {word}", 0.95 - 0.09 * (n % 4)), (" other", 0.03), ("…", 0.01)))
        for n, word in enumerate(target)
    )  # fmt: skip
    return Explanation(
        job="translate",
        given="".join(source),
        answer=" ".join(target),
        pieces=source,
        targets=targets,
        influence=influence,
        method="attention x gradient",
        verdict="No better than chance on 200 validation rows: do not rely on this picture.",
        attention=(
            *crossing,
            attention("encoder.blocks.0.attention", source, source),
            attention("decoder.blocks.0.attention", target, target, causal=True),
        ),
        beam=beam_of(targets),
    )


def beam_of(targets):
    steps = []
    for number, target in enumerate(targets):
        first = Branch(token=target.text, score=-0.2 * (number + 1),
                       parent=0 if number else None, kept=True)  # fmt: skip
        second = Branch(token=" other", score=-0.5 * (number + 1), parent=0 if number else None)
        third = Branch(token=" else", score=-0.9 * (number + 1), parent=1 if number else None)
        steps.append((first, second, third))
    return tuple(steps)


def transcript():
    """A recording of three words: tones, and where CTC and attention find them."""
    rate, vector, seconds = 8000, 0.04, 2.4
    times = torch.arange(int(rate * seconds)) / rate
    words = (("seven", 0.2, 0.7), ("three", 0.9, 1.3), ("nine", 1.6, 2.2))
    generator = torch.Generator().manual_seed(7)
    samples = 0.01 * torch.randn(len(times), generator=generator)
    spectrogram = torch.randn(240, 40, generator=generator) * 0.4
    vectors, letters = 60, sorted({*"seventhri "})
    posteriors = torch.full((vectors, len(letters) + 1), 0.002)
    posteriors[:, 0] = 0.95
    rows, tokens = [], []
    for number, (word, start, end) in enumerate(words):
        spoken = (times >= start) & (times < end)
        samples += spoken * 0.5 * torch.sin(2 * math.pi * 440 * (number + 1) * times)
        spectrogram[int(start * 100) : int(end * 100), 8 * number + 4 : 8 * number + 9] += 4
        for at, letter in enumerate(word):
            place = int((start + (at + 0.5) * (end - start) / len(word)) / vector)
            posteriors[place, letters.index(letter) + 1] = 0.85
            posteriors[place, 0] = 0.1
            rows.append(torch.exp(-0.5 * ((torch.arange(vectors) - place) / 1.5) ** 2))
            tokens.append(letter)
    crossing = torch.stack(rows)
    crossing = (crossing / crossing.sum(-1, keepdim=True)).expand(2, -1, -1)
    stretches = tuple((n / 10, (n + 1) / 10) for n in range(24))
    middle = torch.tensor([(a + b) / 2 for a, b in stretches])
    influence = torch.stack(
        [torch.where((middle > a) & (middle < b), 0.3, -0.04) for _, a, b in words]
    )
    return Explanation(
        job="transcribe",
        given="seven.wav",
        answer="seven three nine",
        pieces=tuple(f"{a:.1f}-{b:.1f} s " for a, b in stretches),
        targets=tuple(
            Target(text=word, probability=0.9, time=(a, b), alternatives=(("heaven", 0.04),))
            for word, a, b in words
        ),
        influence=influence,
        method="occlusion",
        verdict=VERDICT,
        attention=(
            AttentionMap(name="decoder.blocks.0.cross_attention", queries=tuple(tokens),
                         keys=("",) * vectors, weights=crossing),
        ),
        sound=Sound(samples=samples, rate=rate, spectrogram=spectrogram, frame=0.01,
                    posteriors=posteriors, symbols=("", *letters), vector=vector,
                    stretches=stretches, ticks=((10.5, "500"), (20.5, "1,000"))),
    )  # fmt: skip


def story():
    """A continued text: alternatives of every token, and what it looked at."""
    prompt = words_of("The import statement ")[:-1]
    answer = ("combines", " two", " operations", ";", " it", " searches", " for", " the", " named",
              " module", ",", " then", " it", " binds", " the", " results")  # fmt: skip
    generator = torch.Generator().manual_seed(5)
    sure = torch.rand(len(answer), generator=generator) * 0.8 + 0.2
    others = (" is", " names", "\n", " module")
    targets = tuple(
        Target(text=token, probability=p,
               alternatives=((token, p),
                             *((other, (1 - p) / (2 + n)) for n, other in enumerate(others))))
        for token, p in zip(answer, sure.tolist(), strict=True)
    )  # fmt: skip
    pieces = (*prompt, *answer)
    influence = torch.randn(len(answer), len(pieces), generator=generator).abs() * 0.2
    influence *= torch.ones_like(influence).tril(len(prompt) - 1)
    return Explanation(
        job="generate",
        given="The import statement",
        answer="".join(answer),
        pieces=pieces,
        targets=targets,
        influence=influence,
        method="gradient x input",
        verdict=VERDICT,
        attention=tuple(
            attention(f"decoder.blocks.{n}.attention", pieces, pieces, seed=n, causal=True, heads=4)
            for n in range(4)
        ),
    )


def gap():
    """A gap that is filled."""
    pieces = words_of("The capital of France is <mask> , a city on the Seine .")
    tokens = [piece.strip() for piece in pieces]
    influence = torch.tensor([[0.0, 0.3, 0.02, 0.5, 0.05, 0.0, 0, 0.01, 0.1, -0.02, 0, 0.25, 0]])
    return Explanation(
        job="pretrain",
        given="".join(pieces),
        answer="Paris",
        pieces=pieces,
        targets=(Target(text="Paris", probability=0.71, entropy=1.72,
                        alternatives=(("Paris", 0.71), ("Lyon", 0.08), ("Rouen", 0.05))),),
        influence=influence,
        method="occlusion",
        verdict=VERDICT,
        attention=(attention("encoder.blocks.0.attention", tokens, tokens),),
    )  # fmt: skip


def sounding():
    """A label of a recording."""
    heard = transcript()
    targets = (Target(text="seven", probability=0.9), Target(text="nine", probability=0.1))
    return replace(heard, answer="seven", targets=targets, influence=heard.influence[:2])


EVERY = {
    "review": review,
    "translation": translation,
    "transcript": transcript,
    "sounding": sounding,
    "story": story,
    "gap": gap,
}
