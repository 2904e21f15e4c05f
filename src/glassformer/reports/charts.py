"""Charts as inline SVG. Colours come from the page's style, so they follow light and dark."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from glassformer.metrics.calibration import Bin
from glassformer.metrics.intervals import Score
from glassformer.reports.markup import escaped

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 24, 12, 34
SIDE = 320  # of the square reliability diagram
MOST_POINTS = 500
FEW_POINTS = 30  # drawn with a dot each
COLOURS = 6  # the page's style has as many

Number = int | float
Point = tuple[Number, Number]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values to coordinates."""

    low: Number
    high: Number
    start: Number
    end: Number

    def __call__(self, value: Number) -> str:
        share = (value - self.low) / (self.high - self.low)
        return f"{self.start + share * (self.end - self.start):.1f}"


def line_chart(
    curves: Mapping[str, Sequence[Point]],
    title: str,
    across: str = "step",
    *,
    most: Number | None = None,
) -> str:
    """Values against steps, one line per curve. NaN and infinity leave a gap.

    Args:
        most: The upper end of the scale of the values, if it has one.
    """
    finite = [point for points in curves.values() for point in points if is_finite(point)]
    if not finite:
        return ""
    steps, values = zip(*finite, strict=True)
    first = 0 if 0 <= min(steps) <= max(steps) / 2 else min(steps)  # charts then share a scale
    x = Scale(*spread(first, max(steps)), LEFT, WIDTH - RIGHT)
    y_low, y_high = within_scale(*padded(min(values), max(values)), min(values), max(values), most)
    y = Scale(y_low, y_high, HEIGHT - BOTTOM, TOP)
    parts = [*y_axis(y, WIDTH), *x_axis(x, HEIGHT, across)]
    for index, points in enumerate(curves.values()):
        parts += curve(thinned(points), x, y, f"hue-{index % COLOURS}")
    return svg(WIDTH, HEIGHT, title, parts)


def curve(points: Sequence[Point], x: Scale, y: Scale, hue: str) -> Iterator[str]:
    """One line, split at gaps; a single point is a dot."""
    dotted = len(points) <= FEW_POINTS
    for piece in pieces(points):
        places = [(x(step), y(value)) for step, value in piece]
        if len(places) > 1:
            joined = " ".join(f"{a},{b}" for a, b in places)
            yield f'<polyline class="line {hue}" points="{joined}"/>'
        if dotted or len(places) == 1:
            for a, b in places:
                yield f'<circle class="dot {hue}" cx="{a}" cy="{b}" r="2.6"/>'


def reliability_diagram(bins: Sequence[Bin]) -> str:
    """Accuracy against confidence; on the diagonal both agree."""
    x = Scale(0, 1, LEFT, SIDE - RIGHT)
    y = Scale(0, 1, SIDE - BOTTOM, TOP)
    most = max((entry.count for entry in bins), default=1)
    parts = [
        *y_axis(y, SIDE),
        *x_axis(x, SIDE, "confidence"),
        f'<line class="guide" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>',
    ]
    for entry in bins:
        a, b = x(entry.confidence), y(entry.accuracy)
        radius = 2.5 + 6 * math.sqrt(entry.count / most)  # the area is proportional to the count
        sure, right = f"confidence {entry.confidence:.2f}", f"accuracy {entry.accuracy:.2f}"
        hint = f"{sure}, {right}, {entry.count:,} answers"
        parts += [
            f'<line class="gap hue-1" x1="{a}" y1="{y(entry.confidence)}" x2="{a}" y2="{b}"/>',
            f'<circle class="spot hue-0" cx="{a}" cy="{b}" r="{radius:.1f}">'
            f"<title>{hint}</title></circle>",
        ]
    return svg(SIDE, SIDE, "Accuracy by confidence", parts)


def whiskers(
    score: Score, low: Number, high: Number, hue: str, label: str, *, zero: bool = False
) -> str:
    """A score as a dot and its interval as a line, on a scale shared by its neighbours.

    Args:
        zero: Whether to mark zero, for differences.
    """
    if not math.isfinite(score.value):
        return ""
    place = Scale(low, high, 4, 96)
    dot, whisker = place(score.value), list[str]()
    if score.interval is not None:
        left, right = map(place, score.interval)
        whisker = [
            f'<line class="whisker {hue}" x1="{left}%" y1="10" x2="{right}%" y2="10"/>',
            f'<line class="whisker {hue}" x1="{left}%" y1="6" x2="{left}%" y2="14"/>',
            f'<line class="whisker {hue}" x1="{right}%" y1="6" x2="{right}%" y2="14"/>',
        ]
    parts = [
        '<line class="track" x1="2%" y1="10" x2="98%" y2="10"/>',
        *whisker,
        f'<circle class="dot {hue}" cx="{dot}%" cy="10" r="4"/>',
    ]
    if zero:
        parts[1:1] = [f'<line class="axis" x1="{place(0)}%" y1="0" x2="{place(0)}%" y2="20"/>']
    role = f'role="img" aria-label="{escaped(label)}"'
    return f'<svg class="whiskers" height="20" {role}>{"".join(parts)}</svg>'


def bar(share: float, hue: str, label: str) -> str:
    """A bar, as long as its share of the longest."""
    role = f'role="img" aria-label="{escaped(label)}"'
    drawn = f'<rect class="dot {hue}" x="2%" y="5" width="{96 * share:.1f}%" height="10" rx="2"/>'
    return f'<svg class="whiskers" height="20" {role}>{drawn}</svg>'


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """An SVG that scales with its column."""
    head = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escaped(title)}">'
    return "\n".join([head, *parts, "</svg>"])


def y_axis(y: Scale, width: int) -> Iterator[str]:
    """Horizontal grid lines with labels."""
    for tick, text in ticks(y.low, y.high, 5):
        yield (
            f'<line class="grid" x1="{LEFT}" y1="{y(tick)}" x2="{width - RIGHT}" y2="{y(tick)}"/>'
        )
        yield f'<text class="tick end" x="{LEFT - 8}" y="{y(tick)}" dy="0.32em">{text}</text>'


def x_axis(x: Scale, height: int, name: str) -> Iterator[str]:
    """The horizontal axis with labels and its name."""
    floor = height - BOTTOM
    yield f'<line class="axis" x1="{x.start}" y1="{floor}" x2="{x.end}" y2="{floor}"/>'
    for tick, text in ticks(x.low, x.high, 6):
        yield f'<text class="tick middle" x="{x(tick)}" y="{floor + 15}">{text}</text>'
    middle = (x.start + x.end) / 2
    yield f'<text class="tick middle" x="{middle}" y="{height - 4}">{escaped(name)}</text>'


def ticks(low: Number, high: Number, count: int) -> list[tuple[Number, str]]:
    """Round numbers between two ends, with their labels.

    >>> [text for _, text in ticks(0, 1, 5)]
    ['0.0', '0.2', '0.4', '0.6', '0.8', '1.0']
    """
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = [n * step for n in range(first, last + 1)]
    large = max(abs(low), abs(high)) >= 1e7
    return [(place, f"{place:.2g}" if large else f"{place:,.{digits}f}") for place in places]


def spread(low: Number, high: Number) -> tuple[Number, Number]:
    """Two ends that differ even if the values do not, however large they are.

    >>> spread(0.7, 0.7), spread(1e30, 1e30)[0] < 1e30
    ((0.19999999999999996, 1.2), True)
    """
    room = max(0.5, 1e-6 * abs(high))
    return (low, high) if high - low > 1e-9 * max(1, abs(high)) else (low - room, high + room)


def padded(low: Number, high: Number) -> tuple[Number, Number]:
    """The ends with a small margin."""
    low, high = spread(low, high)
    room = (high - low) * 0.05
    return low - room, high + room


def within_scale(
    low: Number, high: Number, least: Number, largest: Number, most: Number | None
) -> tuple[Number, Number]:
    """The ends of an axis, not beyond 0 and the end of the scale unless values are.

    >>> within_scale(-0.5, 0.5, 0.0, 0.0, 1), within_scale(0.45, 1.55, 1.0, 1.0, 1)
    ((0, 0.5), (0.45, 1))
    """
    low = 0 if low < 0 <= least else low
    high = most if most is not None and largest <= most < high else high
    return low, high


def pieces(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Runs of points without gaps."""
    piece: list[Point] = []
    for point in points:
        if is_finite(point):
            piece.append(point)
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """At most MOST_POINTS points, keeping the last one."""
    stride = max(1, math.ceil(len(points) / MOST_POINTS))
    return points if stride == 1 else [*points[:-1:stride], points[-1]]


def is_finite(point: Point) -> bool:
    """Whether it can be drawn."""
    return math.isfinite(point[0]) and math.isfinite(point[1])
