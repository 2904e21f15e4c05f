"""An explanation as a picture for papers and slides: PNG, SVG or PDF, drawn by matplotlib.

labels        the text, coloured by influence towards each of the likeliest labels
a recording   words, spectrogram, CTC and attention on one axis of time
a translation its words linked with those of the source, and the matrix of attention
another text  how sure each word was, its alternatives, and what spoke for it
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.explaining.alignment import Alignment
from glassformer.explaining.explanation import Explanation
from glassformer.explaining.parts import Sound
from glassformer.explaining.views.alignment_picture import centres, draw_sides
from glassformer.explaining.views.blocks import QUIET, Block, Fonts, draw_blocks, text_block
from glassformer.explaining.views.hearing_picture import HearingPicture, draw_hearing
from glassformer.explaining.views.matrix_picture import matrix_block
from glassformer.explaining.views.pictures import check_picture
from glassformer.explaining.views.selection import Selection, select
from glassformer.explaining.views.word_picture import doubts_block, words_block
from glassformer.explaining.views.wording import alternatives_of, method_name, percent, visible

MOST_LABELS = 3
MOST_OTHERS = 6
MOST_LINKED = 40  # words on either side of which links are drawn
INCHES_PER_CELL = 0.12
MARKS = "Blue, underlined: for. Orange, dashed: against. The stronger, the more it counts."
USED = "+−.0123456789 %<,:–…␣↵∅"  # characters of the wording itself


def draw_explanation(
    explanation: Explanation, path: Path, *, layer: str | None = None, head: int | None = None
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
    if not explanation.written:
        blocks = _label_blocks(explanation, fonts)
    elif chosen is not None and chosen.group.crosses:
        blocks = _translation_blocks(explanation, chosen, fonts)
    else:
        blocks = _text_blocks(explanation, fonts)
    asked = layer is not None or head is not None
    if asked and chosen is not None and not chosen.group.crosses:
        blocks += _attention_blocks(chosen, fonts)
    draw_blocks([*blocks, *_footer(explanation, fonts)], path)


def _texts(explanation: Explanation, chosen: Selection | None) -> list[str]:
    """All that is drawn."""
    targets = explanation.targets
    found = [*explanation.pieces, *(target.text for target in targets), explanation.answer]
    if len(targets) == 1:
        found += [text for text, _ in targets[0].alternatives]
    found += [explanation.method, explanation.verdict]
    if chosen is not None:
        found += [chosen.title, *chosen.attention.queries, *chosen.attention.keys]
    return [visible(text) for text in found]


def _footer(explanation: Explanation, fonts: Fonts) -> list[Block]:
    note = _note(explanation)
    return [text_block(note, fonts, size=9.0, color=QUIET)] if note else []


def _note(explanation: Explanation) -> str:
    """The method, and how far it can be trusted."""
    if not explanation.method:
        return ""
    return f"{method_name(explanation.method)}: {explanation.verdict or 'not measured'}"


def _label_blocks(explanation: Explanation, fonts: Fonts) -> list[Block]:
    """The text once for each of the likeliest labels."""
    blocks = []
    likeliest = explanation.targets[:MOST_LABELS]
    for target, values in zip(likeliest, explanation.influence, strict=False):
        title = f"{visible(target.text)}  {percent(target.probability)}"
        blocks.append(text_block(title, fonts, size=14.0, fontweight="bold"))
        blocks.append(words_block(explanation.pieces, values.tolist(), fonts))
    return [*blocks, text_block(MARKS, fonts, size=9.0, color=QUIET)]


def _translation_blocks(explanation: Explanation, chosen: Selection, fonts: Fonts) -> list[Block]:
    """Linked words, the matrix of attention, and that of influence."""
    found = chosen.attention
    weights, keys, queries = found.weights[0], found.keys, found.queries
    blocks = [text_block(f"attention: {chosen.title}", fonts, size=11.0, fontweight="bold")]
    if max(len(keys), len(queries)) <= MOST_LINKED:
        sides = (tuple(map(visible, keys)), tuple(map(visible, queries)))
        blocks.append(_links_block(Alignment(*sides, weights), fonts))
    blocks.append(matrix_block(weights.numpy(), queries, keys, fonts))
    return blocks + _influence_blocks(explanation, fonts)


def _links_block(alignment: Alignment, fonts: Fonts) -> Block:
    widest = max(centres(alignment.source)[1], centres(alignment.target)[1])

    def draw(axes: Any) -> None:
        inches = axes.bbox.width / axes.figure.dpi
        half = max(widest / 2 + 1, inches / INCHES_PER_CELL / 2)
        axes.set(xlim=(-half, half), ylim=(-0.45, 1.45))
        draw_sides(axes, alignment, fonts.families)

    return Block(height=2.4, draw=draw, width=widest * INCHES_PER_CELL)


def _text_blocks(explanation: Explanation, fonts: Fonts) -> list[Block]:
    """What was written and how sure; of a few words their alternatives; what speaks for each."""
    targets = explanation.targets
    texts = [target.text for target in targets]
    if " " in explanation.answer and not any(text != text.strip() for text in texts):
        texts = [f"{visible(text)} " for text in texts]
    blocks = [
        text_block("written, the darker the less sure", fonts, size=11.0, fontweight="bold"),
        doubts_block(texts, [target.probability for target in targets], fonts),
    ]
    if len(targets) == 1:
        others = alternatives_of(targets[0], MOST_OTHERS)
        sure = f"{visible(targets[0].text)} {percent(targets[0].probability)}"
        blocks.append(text_block(f"{sure}; alternatives: {others or 'none'}", fonts, size=10.0))
        return [
            *blocks,
            words_block(explanation.pieces, explanation.influence[0].tolist(), fonts),
            text_block(MARKS, fonts, size=9.0, color=QUIET),
        ]
    return blocks + _influence_blocks(explanation, fonts)


def _influence_blocks(explanation: Explanation, fonts: Fonts) -> list[Block]:
    """What speaks for each word that was written."""
    names = [target.text for target in explanation.targets]
    values = explanation.influence.float().numpy()
    return [
        text_block("what speaks for each word", fonts, size=11.0, fontweight="bold"),
        matrix_block(values, names, explanation.pieces, fonts),
    ]


def _attention_blocks(chosen: Selection, fonts: Fonts) -> list[Block]:
    found = chosen.attention
    return [
        text_block(f"attention: {chosen.title}", fonts, size=11.0, fontweight="bold"),
        matrix_block(found.weights[0].numpy(), found.queries, found.keys, fonts),
    ]


def heard(explanation: Explanation, sound: Sound, chosen: Selection | None) -> HearingPicture:
    """What the picture of a recording draws."""
    tokens: Sequence[str] = ()
    attention = None
    if chosen is not None and chosen.group.crosses:
        tokens, attention = chosen.attention.queries, chosen.attention.weights[0].numpy()
    influence = None
    if len(sound.stretches) == explanation.influence.shape[1]:
        influence = explanation.influence.float().numpy()
    return HearingPicture(
        features=sound.spectrogram.float().numpy(),
        seconds=sound.seconds,
        vector=sound.vector,
        unit=sound.unit,
        ticks=sound.ticks,
        words=[(one.text, *one.time) for one in explanation.targets if one.time is not None],
        tokens=tokens,
        names=sound.symbols,
        posteriors=None if sound.posteriors is None else np.asarray(sound.posteriors.float()),
        attention=attention,
        influence=influence,
        stretches=sound.stretches,
        note=_note(explanation),
    )
