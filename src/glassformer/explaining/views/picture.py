"""An explanation as a picture for papers and slides: PNG, SVG or PDF, drawn by matplotlib.

an image      what was read, what of it counted for each label, and where attention looked
labels        the text, coloured by influence towards each of the likeliest labels
a recording   words, spectrogram, CTC and attention on one axis of time
a translation its words linked with those of the source, and the matrix of attention
another text  how sure each word was, its alternatives, and what spoke for it
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.explaining.alignment import Alignment
from glassformer.explaining.parts import Image, Target
from glassformer.explaining.record import ExplanationRecord
from glassformer.explaining.views.alignment_picture import centres, draw_sides
from glassformer.explaining.views.blocks import (
    MARGIN,
    POINTS,
    WIDTH,
    Block,
    Fonts,
    beside,
    draw_blocks,
    text_block,
)
from glassformer.explaining.views.hearing_picture import draw_hearing
from glassformer.explaining.views.image_picture import Panel, image_block
from glassformer.explaining.views.matrix_picture import influence_ends, matrix_block, weight_ends
from glassformer.explaining.views.neighbour_picture import NEAREST, neighbours_block
from glassformer.explaining.views.pictures import QUIET, check_picture
from glassformer.explaining.views.selection import Selection, select
from glassformer.explaining.views.sound_picture import heard
from glassformer.explaining.views.word_picture import doubts_block, words_block
from glassformer.explaining.views.wording import (
    STRANGE,
    alternatives_of,
    no_answer,
    note_of,
    percent,
    reading_of,
    visible,
)

MOST_LABELS = 3
BESIDE = 2  # labels of an image, next to one another
MOST_OTHERS = 6
MOST_LINKED = 40  # words on either side of which links are drawn
INCHES_PER_CELL = 0.12
MOST_BESIDE = 3  # alternatives beside a row of a matrix
TITLE, HEADING, TEXT, SMALL = 14.0, 11.0, 10.0, 9.0  # points
MARKS = "Blue, underlined: for. Orange, dashed: against. The stronger, the more it counts."
PATCHES = "Blue: for the label. Orange: against it. The stronger, the more it counts."
DARKER = "The darker, the more."
NOTHING = "There was nothing to explain."
USED = "+−.0123456789 %<>,:–…␣↵∅()"  # characters of the wording itself


def draw_explanation(
    explanation: ExplanationRecord, path: Path, *, layer: str | None = None, head: int | None = None
) -> None:
    """Draw an explanation in the format that the path ends in.

    Args:
        layer, head: The attention to draw, as `selection.select` takes them.
    """
    check_picture(path)
    chosen = select(explanation.attention, layer=layer, head=head)
    if explanation.sound is not None:
        draw_hearing(heard(explanation, explanation.sound, chosen), path)
        return
    fonts = Fonts.for_texts(*_texts(explanation, chosen), USED, MARKS)
    if not explanation.targets:
        blocks = [text_block(NOTHING, fonts, size=TEXT)]
    elif explanation.image is not None:
        blocks = _image_blocks(explanation, explanation.image, chosen, fonts)
    elif not explanation.written:
        blocks = _label_blocks(explanation, fonts)
    elif chosen is not None and chosen.group.crosses:
        blocks = _translation_blocks(explanation, chosen, fonts)
    else:
        blocks = _text_blocks(explanation, fonts)
    if explanation.reason:
        blocks = [text_block(no_answer(explanation.reason), fonts, size=HEADING), *blocks]
    asked = layer is not None or head is not None
    crosses = chosen is not None and chosen.group.crosses
    if asked and chosen is not None and not crosses and explanation.image is None:
        blocks += _attention_blocks(chosen, fonts)
    blocks += [
        text_block(note, fonts, size=SMALL, color=QUIET)
        for note in (
            *(_strange(explanation) if explanation.strange else ()),
            note_of(explanation.method, explanation.verdict),
            *explanation.notes,
        )
    ]
    if explanation.neighbours:
        blocks += [_heading(NEAREST, fonts), neighbours_block(explanation.neighbours, fonts)]
    draw_blocks(blocks, path)


def _texts(explanation: ExplanationRecord, chosen: Selection | None) -> list[str]:
    """All that is drawn."""
    targets = explanation.targets
    found = [*explanation.pieces, *(target.text for target in targets), explanation.answer]
    found += [text for target in targets for text, _ in target.alternatives]
    found += [explanation.method, explanation.verdict, *explanation.notes, explanation.reason]
    for one in explanation.neighbours:
        found += [one.text, one.target, one.where]
    if chosen is not None:
        found += [chosen.title, *chosen.attention.queries, *chosen.attention.keys]
    return [visible(text) for text in found]


def _strange(explanation: ExplanationRecord) -> Iterator[str]:
    """The pieces that were not seen in training, or have something that was not."""
    names = [visible(explanation.pieces[at]) for at in explanation.strange]
    more = "" if len(names) <= MOST_OTHERS else ", …"
    yield f"Hatched, {STRANGE}: {', '.join(names[:MOST_OTHERS])}{more}"


def _heading(text: str, fonts: Fonts) -> Block:
    wide = fonts.narrowed(text).width(text, HEADING, fontweight="bold")
    block = text_block(text, fonts, size=HEADING, fontweight="bold")
    return replace(block, width=min(wide, WIDTH - 2 * MARGIN))


def _words_block(explanation: ExplanationRecord, values: Sequence[float], fonts: Fonts) -> Block:
    """The text that was read, coloured by influence."""
    signed, strange = explanation.signed, explanation.strange
    return words_block(explanation.pieces, values, fonts, signed=signed, hatched=strange)


def _marks(explanation: ExplanationRecord) -> str:
    """What the colours of words say."""
    reading = reading_of(explanation.method, signed=explanation.signed)
    return MARKS if explanation.signed else f"{DARKER} {reading.legend}"


def _label_blocks(explanation: ExplanationRecord, fonts: Fonts) -> list[Block]:
    """The text once for each of the likeliest labels, or for all where it is the same."""
    blocks = []
    likeliest: list[Sequence[Target]] = [(one,) for one in explanation.targets[:MOST_LABELS]]
    rows = explanation.influence[:MOST_LABELS]
    if len(rows) and bool((rows == rows[0]).all()):
        likeliest = [explanation.targets[:MOST_LABELS]]
    for targets, values in zip(likeliest, rows.tolist(), strict=False):
        blocks.append(_label_block(targets, fonts))
        blocks.append(
            _words_block(explanation, values, fonts)
            if explanation.pieces
            else text_block(NOTHING, fonts, size=TEXT)
        )
    said = [_marks(explanation), *_other_labels(explanation)]
    return [*blocks, *(text_block(text, fonts, size=SMALL, color=QUIET) for text in said)]


def _image_blocks(
    explanation: ExplanationRecord, image: Image, chosen: Selection | None, fonts: Fonts
) -> list[Block]:
    """The image, what of it counts for the likeliest labels, and where attention looked."""
    shown: list[Panel] = [("image", None, False)]
    signed = explanation.signed
    for target, row in zip(explanation.targets[:BESIDE], explanation.influence, strict=False):
        title = f"{target.text}, {percent(target.probability)}"
        shown.append((title, image.grid(row), signed))
    if chosen is not None:
        shown.append((chosen.title, image.looked_at(chosen.attention), False))
    said = [PATCHES if signed else _marks(explanation), *_other_labels(explanation, BESIDE)]
    return [
        _heading(explanation.answer, fonts),
        image_block(image, shown, fonts),
        *(text_block(text, fonts, size=SMALL, color=QUIET) for text in said),
    ]


def _other_labels(explanation: ExplanationRecord, drawn: int = MOST_LABELS) -> list[str]:
    """The next labels for which nothing is drawn, in a line."""
    others = explanation.targets[drawn : drawn + MOST_OTHERS]
    said = [f"{visible(one.text)} {percent(one.probability)}" for one in others]
    more = "" if len(explanation.targets) <= drawn + MOST_OTHERS else ", …"
    return [f"Less likely: {', '.join(said)}{more}"] if said else []


def _label_block(targets: Sequence[Target], fonts: Fonts) -> Block:
    """Names of labels in bold, each with its probability."""
    height, inside = 1.45 * TITLE / POINTS, WIDTH - 2 * MARGIN

    def draw(axes: Any) -> None:
        x = 0.0
        for target in targets:
            own = fonts.narrowed(target.text)
            name = own.fitted(visible(target.text), TITLE, inside / len(targets) - 1)
            axes.text(x, height / 2, name, va="center", **own.style(TITLE, fontweight="bold"))
            x += own.width(name, TITLE, fontweight="bold") + 0.15
            sure = percent(target.probability)
            axes.text(x, height / 2, sure, va="center", **fonts.style(TITLE, color=QUIET))
            x += fonts.width(sure, TITLE) + 0.4

    return Block(height=height, draw=draw)


def _translation_blocks(
    explanation: ExplanationRecord, chosen: Selection, fonts: Fonts
) -> list[Block]:
    """Linked words, the matrix of attention, and that of influence."""
    found = chosen.attention
    weights, keys, queries = found.weights[0], found.keys, found.queries
    blocks = []
    if max(len(keys), len(queries)) <= MOST_LINKED:
        sides = (tuple(map(visible, keys)), tuple(map(visible, queries)))
        blocks.append(_links_block(Alignment(*sides, weights), fonts))
    return [
        *blocks,
        *beside(_attention_blocks(chosen, fonts), _influence_blocks(explanation, fonts)),
        *_reading_blocks(explanation, fonts),
    ]


def _links_block(alignment: Alignment, fonts: Fonts) -> Block:
    widest = max(centres(alignment.source)[1], centres(alignment.target)[1])

    def draw(axes: Any) -> None:
        inches = axes.bbox.width / axes.figure.dpi
        half = max(widest / 2 + 1, inches / INCHES_PER_CELL / 2)
        axes.set(xlim=(-half, half), ylim=(-0.45, 1.45))
        draw_sides(axes, alignment, fonts.families)

    return Block(height=2.4, draw=draw, width=widest * INCHES_PER_CELL)


def _text_blocks(explanation: ExplanationRecord, fonts: Fonts) -> list[Block]:
    """What was written and how sure; of a few words their alternatives; what speaks for each."""
    targets = explanation.targets
    texts = [target.text for target in targets]
    if " " in explanation.answer and not any(text != text.strip() for text in texts):
        texts = [f"{visible(text)} " for text in texts]
    blocks = [
        _heading("Written: the darker, the less sure", fonts),
        doubts_block(texts, [target.probability for target in targets], fonts),
    ]
    if len(targets) == 1:
        others = ", ".join(alternatives_of(targets[0], MOST_OTHERS))
        sure = f"{visible(targets[0].text)} {percent(targets[0].probability)}"
        reading = reading_of(explanation.method, signed=explanation.signed)
        values = explanation.influence[0].tolist()
        return [
            *blocks,
            text_block(f"{sure}; alternatives: {others or 'none'}", fonts, size=TEXT),
            _heading(reading.title.format(answer=visible(targets[0].text)), fonts),
            _words_block(explanation, values, fonts),
            text_block(_marks(explanation), fonts, size=SMALL, color=QUIET),
        ]
    return [
        *blocks,
        *_influence_blocks(explanation, fonts),
        *_reading_blocks(explanation, fonts),
    ]


def _reading_blocks(explanation: ExplanationRecord, fonts: Fonts) -> list[Block]:
    """What a matrix without a sign says; one with a sign has that on its scale."""
    if explanation.signed:
        return []
    return [text_block(_marks(explanation), fonts, size=SMALL, color=QUIET)]


def _influence_blocks(explanation: ExplanationRecord, fonts: Fonts) -> list[Block]:
    """What speaks for each word that was written; beside it how sure it was, and what else."""
    targets, signed = explanation.targets, explanation.signed
    values = explanation.influence.float().numpy()
    matrix = matrix_block(
        values,
        [target.text for target in targets],
        explanation.pieces,
        fonts,
        ends=influence_ends(values, signed=signed),
        signed=signed,
        beside=_sureness(targets),
    )
    reading = reading_of(explanation.method, signed=signed)
    return [_heading(reading.title.format(answer="each word"), fonts), matrix]


def _sureness(targets: Sequence[Target]) -> list[tuple[str, ...]]:
    """How sure each word was, and what else was likely, if that is known of any."""
    others = [", ".join(alternatives_of(target, MOST_BESIDE)) for target in targets]
    sure = [percent(target.probability) for target in targets]
    if not any(others):
        return [("sure",), *((one,) for one in sure)]
    return [("sure", "alternatives"), *zip(sure, others, strict=True)]


def _attention_blocks(chosen: Selection, fonts: Fonts) -> list[Block]:
    found = chosen.attention
    weights = found.weights[0].numpy()
    matrix = matrix_block(weights, found.queries, found.keys, fonts, ends=weight_ends(weights))
    return [_heading(chosen.title[:1].upper() + chosen.title[1:], fonts), matrix]
