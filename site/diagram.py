"""The diagram at the head of each chapter: a Transformer, with the parts the chapter is about lit.

The picture is plain SVG on a light ground of its own, so that it reads on a dark page as well.
"""

from collections.abc import Collection
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 780, 470
LIT, INK, LINE = "#0072b2", "#333333", "#9a9a9a"


@dataclass(frozen=True)
class Part:
    """One box of the diagram: where it stands, its label, and its name in running text."""

    x: int
    y: int
    width: int
    height: int
    label: str
    english: str
    chinese: str


PARTS = {
    # what goes in, below the encoder
    "text": Part(20, 420, 62, 32, "tokens", "tokens", "词元"),
    "sound": Part(92, 420, 62, 32, "frames", "frames of sound", "语音帧"),
    "image": Part(164, 420, 62, 32, "patches", "patches of an image", "图像小块"),
    "vectors": Part(20, 366, 128, 32, "vectors", "vectors", "向量"),
    "positions": Part(158, 366, 68, 32, "positions", "positions", "位置"),
    # the encoder
    "attention": Part(40, 284, 166, 32, "self-attention", "self-attention", "自注意力"),
    "residual": Part(40, 254, 166, 20, "add & norm", "residuals and norms", "残差与归一化"),
    "feedforward": Part(40, 214, 166, 30, "feed-forward", "the feed-forward net", "前馈网络"),
    "residual-2": Part(40, 184, 166, 20, "add & norm", "residuals and norms", "残差与归一化"),
    # what comes out of an encoder
    "pool": Part(20, 112, 62, 40, "mean →\nclass", "the mean and the class", "平均与类别"),
    "ctc": Part(92, 112, 62, 40, "CTC", "CTC", "CTC"),
    "gaps": Part(164, 112, 62, 40, "filled\ngaps", "filled gaps", "填空"),
    # the decoder
    "written": Part(
        268, 420, 206, 32, "tokens written so far", "tokens written so far", "已写的词元"
    ),
    "d-vectors": Part(268, 366, 128, 32, "vectors", "vectors", "向量"),
    "d-positions": Part(406, 366, 68, 32, "positions", "positions", "位置"),
    "causal": Part(
        288, 304, 116, 34, "self-attention,\ncausal", "causal self-attention", "因果自注意力"
    ),
    "cache": Part(414, 304, 50, 34, "cache", "the cache", "缓存"),
    "cross": Part(288, 250, 176, 34, "cross-attention", "cross-attention", "交叉注意力"),
    "d-feedforward": Part(288, 198, 176, 32, "feed-forward", "the feed-forward net", "前馈网络"),
    "next": Part(288, 112, 176, 40, "scores of the\nnext token", "the next token", "下一个词元"),
    # inside attention
    "qkv": Part(
        536, 398, 204, 34, "queries, keys, values", "queries, keys and values", "查询、键和值"
    ),
    "score": Part(536, 342, 204, 34, "score: q · k", "the dot product", "点积"),
    "mask": Part(536, 286, 204, 34, "mask: who may see whom", "the mask", "掩码"),
    "softmax": Part(536, 230, 204, 34, "softmax: weights", "the softmax", "softmax"),
    "average": Part(536, 174, 204, 34, "average of the values", "the weighted average", "加权平均"),
    "heads": Part(536, 118, 204, 34, "heads side by side", "heads", "多头"),
    # around everything
    "training": Part(
        20,
        28,
        740,
        34,
        "training: loss → gradient → a small step of every weight",
        "training",
        "训练",
    ),
}
FRAMES = [  # x, y, width, height, title
    (30, 162, 186, 164, "encoder, N blocks"),
    (278, 172, 196, 176, "decoder, N blocks"),
    (518, 92, 240, 356, "inside attention, once for each head"),
]
ARROWS = [  # points from start to end
    [(51, 420), (51, 400)],
    [(123, 420), (123, 400)],
    [(192, 420), (192, 410), (140, 410), (140, 400)],
    [(158, 382), (150, 382)],
    [(84, 366), (84, 318)],
    [(123, 284), (123, 275)],
    [(123, 254), (123, 245)],
    [(123, 214), (123, 205)],
    [(51, 162), (51, 153)],
    [(123, 162), (123, 153)],
    [(192, 162), (192, 153)],
    [(332, 420), (332, 400)],
    [(406, 382), (398, 382)],
    [(340, 366), (340, 340)],
    [(406, 321), (412, 321)],
    [(346, 304), (346, 286)],
    [(376, 250), (376, 231)],
    [(420, 198), (420, 154)],
    [(216, 194), (248, 194), (248, 267), (286, 267)],
    [(638, 398), (638, 378)],
    [(638, 342), (638, 322)],
    [(638, 286), (638, 266)],
    [(638, 230), (638, 210)],
    [(638, 174), (638, 154)],
    [(376, 112), (376, 64)],
    [(123, 112), (123, 64)],
]


def drawing(lit: Collection[str]) -> str:
    """The diagram as SVG, with these parts in colour."""
    if unknown := set(lit) - set(PARTS):
        raise ValueError(f"the diagram has no part {', '.join(sorted(unknown))}")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" '
        f'markerHeight="6" orient="auto"><path d="M0 0 L8 4 L0 8 Z" fill="{LINE}"/></marker>'
        "</defs>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#ffffff"/>',
    ]
    for x, y, width, height, title in FRAMES:
        lines.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="#fafafa" '
            f'stroke="{LINE}" stroke-dasharray="4 3"/>'
        )
        lines.append(words(x + 10, y + 11, title, INK, 11, anchor="start"))
    for points in ARROWS:
        path = " L".join(f"{x} {y}" for x, y in points)
        lines.append(f'<path d="M{path}" fill="none" stroke="{LINE}" marker-end="url(#tip)"/>')
    for name, part in PARTS.items():
        fill, stroke, ink = (LIT, LIT, "#ffffff") if name in lit else ("#eef0f2", LINE, INK)
        lines.append(
            f'<rect x="{part.x}" y="{part.y}" width="{part.width}" height="{part.height}" rx="5" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )
        middle = part.x + part.width / 2, part.y + part.height / 2
        lines.append(words(*middle, part.label, ink, 12 if part.height > 20 else 11))
    return "\n".join([*lines, "</svg>\n"])


def words(x: float, y: float, text: str, colour: str, size: int, anchor: str = "middle") -> str:
    """Text at a point, centred unless `anchor` says otherwise, in one or two lines."""
    rows = text.split("\n")
    top = y + size * 0.36 - (len(rows) - 1) * size * 0.55
    return "".join(
        f'<text x="{x:g}" y="{top + number * size * 1.1:.1f}" text-anchor="{anchor}" '
        f'font-size="{size}" fill="{colour}">{escape(row)}</text>'
        for number, row in enumerate(rows)
    )


def described(lit: Collection[str], chinese: bool) -> str:
    """What the diagram shows, for those who do not see it."""
    names = list(
        dict.fromkeys(PARTS[name].chinese if chinese else PARTS[name].english for name in lit)
    )
    if len(lit) == len(PARTS):
        return "Transformer 的结构图" if chinese else "The parts of a Transformer"
    if chinese:
        return f"Transformer 的结构图，本章讲其中的{'、'.join(names)}"
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"The parts of a Transformer; this chapter is about {listed}"
