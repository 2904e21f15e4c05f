"""Do continued Tang poems keep the form: lines of the right length that rhyme in the right places?

    python benchmarks/tang_poetry.py choose runs/poems        # a temperature, by validation poems
    python benchmarks/tang_poetry.py sample runs/poems samples.jsonl    # 1,000 continuations
    python benchmarks/tang_poetry.py score samples.jsonl

The first and the last need pypinyin.


A prompt is the first half-line of a test poem, of five or seven characters, up to its comma. A
line has the form 白日依山盡，黃河入海流。: two half-lines as long as the first of the poem. Lines
end in a rhyme; what rhymes today is read from pinyin, so that not every rhyme of a thousand years
ago counts, neither in samples nor in poems. The ends of first half-lines show what chance gives.
"""

import argparse
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import glassformer
from glassformer.data.samples import Samples
from glassformer.terminal import print_line

COUNT = 1000
TEMPERATURES = (0.9, 0.8, 0.7, 0.6, 0.5)
NEAR, FORMED = 2.0, 95.5  # points from the rhymes of poems, % of lines well formed
WELL_FORMED, RHYMES = "well formed, %", "rhymes with the line before, %"
OPENING = re.compile(r"([\u3400-\u9fff]{5}|[\u3400-\u9fff]{7})，")
HALF = r"[\u3400-\u9fff]{%d}"
ENDINGS = {
    **{final: final.lstrip("iuv") for final in ("ia", "ua", "iao", "uai", "ian", "uan", "van")},
    **{"iang": "ang", "uang": "ang", "uo": "o", "e": "o", "iong": "ong", "ueng": "eng"},
    **{"in": "en", "un": "en", "uen": "en", "vn": "en", "ing": "eng"},
    **{"iu": "ou", "iou": "ou", "ui": "ei", "uei": "ei", "ve": "ie", "ue": "ie", "v": "i"},
}  # finals that rhyme, by the one that stands for them; all others only with themselves


def sample(run: glassformer.Run, split: str, settings: list[str]) -> list[dict[str, Any]]:
    """The continuations of some poems, and the poems."""
    poems = Samples.open(run.folder.data).values("text", split)
    if run.config.data.tokenizer.simplified:
        from glassformer.data.text.chinese import simplified

        poems = map(simplified, poems)
    found = {match[0]: poem for poem in poems if (match := OPENING.match(poem))}
    prompts, rows = list(found)[:COUNT], []
    for prompt, one in zip(prompts, run.predict_each(prompts, set=settings), strict=True):
        whole = one.details["ended"] == "end"
        text = one.text if whole else one.text.rpartition("\n")[0]
        rows.append({"sample": text, "whole": whole, "poem": found[prompt]})
    return rows


def choose(run: glassformer.Run, settings: list[str]) -> None:
    """The highest temperature at which continuations of validation poems keep the form."""
    chosen = None
    for temperature in TEMPERATURES:
        rows = sample(run, "valid", [*settings, f"decode.sample.temperature={temperature}"])
        samples, poems = (score([row[name] for row in rows]) for name in ("sample", "poem"))
        print_line(
            f"temperature {temperature}: {RHYMES} {samples[RHYMES]:.1f} ({poems[RHYMES]:.1f})"
        )
        print_line(f"    {WELL_FORMED} {samples[WELL_FORMED]:.1f} ({poems[WELL_FORMED]:.1f})")
        keeps = samples[WELL_FORMED] >= FORMED and poems[RHYMES] - samples[RHYMES] <= NEAR
        chosen = temperature if keeps and chosen is None else chosen
    print_line(f"chosen: {chosen}")


def couplets(poem: str) -> Iterator[tuple[str, str] | None]:
    """The half-lines of each line, None for one that is not well formed."""
    opening = OPENING.match(poem)
    half = HALF % len(opening[1]) if opening else "$^"
    for line in filter(None, poem.split("\n")):
        match = re.fullmatch(f"({half})，({half})[。？！；]", line)
        yield (match[1], match[2]) if match else None


def rhymes(first: str, second: str) -> bool:
    """Whether some readings of two characters rhyme."""
    return bool(readings(first) & readings(second))


def readings(character: str) -> set[str]:
    """The rhymes of a character, by its readings."""
    from pypinyin import Style, pinyin

    [finals] = pinyin(character, style=Style.FINALS, heteronym=True, strict=False)
    return {ENDINGS.get(final, final) for final in finals}


def score(poems: list[str]) -> dict[str, float]:
    """The shares of lines that are well formed, and of lines that rhyme with the one before."""
    lines = [list(couplets(poem)) for poem in poems]
    pairs = [(a, b) for poem in lines for a, b in pairwise(poem) if a and b]
    every = [line for poem in lines for line in poem]
    return {
        "lines": len(every),
        WELL_FORMED: 100 * sum(line is not None for line in every) / max(1, len(every)),
        RHYMES: 100 * rate(pairs, 1),
        "the same of first half-lines, %": 100 * rate(pairs, 0),
    }


def rate(pairs: list[tuple[tuple[str, str], tuple[str, str]]], half: int) -> float:
    """The share of pairs of lines whose halves rhyme."""
    return sum(rhymes(a[half][-1], b[half][-1]) for a, b in pairs) / max(1, len(pairs))


def main() -> None:
    """Sample or score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("choose", "sample", "score"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--set", action="append", default=[], help="such as decode.method=greedy")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    if args.action != "score":
        run = glassformer.load(args.paths[0], device=args.device)
        if args.action == "choose":
            choose(run, args.set)
            return
        lines = (json.dumps(row, ensure_ascii=False) for row in sample(run, args.split, args.set))
        args.paths[1].write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    rows = [json.loads(line) for line in args.paths[0].read_text(encoding="utf-8").splitlines()]
    print_line(f"{len(rows):,} poems; {sum(row['whole'] for row in rows):,} samples came to an end")
    found = {name: score([row[name] for row in rows]) for name in ("sample", "poem")}
    for name in found["sample"]:
        print_line(f"{name}: samples {found['sample'][name]:.1f}, poems {found['poem'][name]:.1f}")


if __name__ == "__main__":
    main()
