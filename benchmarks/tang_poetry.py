"""Do continued Tang poems keep the form: lines of the right length that rhyme in the right places?

    python benchmarks/tang_poetry.py sample runs/poems samples.jsonl    # 1,000 continuations
    python benchmarks/tang_poetry.py score samples.jsonl                # needs pypinyin

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

import glassformer
from glassformer.data.samples import Samples
from glassformer.terminal import print_line

COUNT = 1000
OPENING = re.compile(r"([\u3400-\u9fff]{5}|[\u3400-\u9fff]{7})，")
HALF = r"[\u3400-\u9fff]{%d}"
ENDINGS = {
    **{final: final.lstrip("iuv") for final in ("ia", "ua", "iao", "uai", "ian", "uan", "van")},
    **{"iang": "ang", "uang": "ang", "uo": "o", "e": "o", "iong": "ong", "ueng": "eng"},
    **{"in": "en", "un": "en", "uen": "en", "vn": "en", "ing": "eng"},
    **{"iu": "ou", "iou": "ou", "ui": "ei", "uei": "ei", "ve": "ie", "ue": "ie", "v": "i"},
}  # finals that rhyme, by the one that stands for them; all others only with themselves


def sample(run: glassformer.Run, path: Path, split: str, settings: list[str]) -> None:
    """Write the continuations of some poems, and the poems."""
    poems = Samples.open(run.folder.data).values("text", split)
    if run.config.data.tokenizer.simplified:
        from glassformer.data.text.chinese import simplified

        poems = map(simplified, poems)
    found = {match[0]: poem for poem in poems if (match := OPENING.match(poem))}
    prompts = list(found)[:COUNT]
    predictions = run.predict_each(prompts, set=settings)
    with path.open("w", encoding="utf-8") as file:
        for prompt, one in zip(prompts, predictions, strict=True):
            whole = one.details["ended"] == "end"
            text = one.text if whole else one.text.rpartition("\n")[0]
            row = {"sample": text, "whole": whole, "poem": found[prompt]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


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
        "well formed, %": 100 * sum(line is not None for line in every) / len(every),
        "rhymes with the line before, %": 100 * rate(pairs, 1),
        "the same of first half-lines, %": 100 * rate(pairs, 0),
    }


def rate(pairs: list[tuple[tuple[str, str], tuple[str, str]]], half: int) -> float:
    """The share of pairs of lines whose halves rhyme."""
    return sum(rhymes(a[half][-1], b[half][-1]) for a, b in pairs) / max(1, len(pairs))


def main() -> None:
    """Sample or score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("sample", "score"))
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--set", action="append", default=[], help="such as decode.method=greedy")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    if args.action == "sample":
        run = glassformer.load(args.paths[0], device=args.device)
        sample(run, args.paths[1], args.split, args.set)
        return
    rows = [json.loads(line) for line in args.paths[0].read_text(encoding="utf-8").splitlines()]
    print_line(f"{len(rows):,} poems; {sum(row['whole'] for row in rows):,} samples came to an end")
    found = {name: score([row[name] for row in rows]) for name in ("sample", "poem")}
    for name in found["sample"]:
        print_line(f"{name}: samples {found['sample'][name]:.1f}, poems {found['poem'][name]:.1f}")


if __name__ == "__main__":
    main()
