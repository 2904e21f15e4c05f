// The lanes of a recording, on one axis of time: spectrogram, influence, CTC, attention.
// Each is { name, track }, with { marks } beside the track where its height means something.

const MAGMA = [
  [0, 0, 4],
  [40, 17, 89],
  [114, 31, 129],
  [182, 54, 121],
  [241, 96, 93],
  [254, 175, 119],
  [252, 253, 191],
];
const CURVE = 0.82; // of the height of CTC: what is above has the names of the peaks
const TOKEN_ROW = 13; // pixels of a row of attention

function magma(level) {
  const at = (level / 255) * (MAGMA.length - 1),
    low = Math.min(MAGMA.length - 2, Math.floor(at)),
    part = at - low;
  return MAGMA[low].map((from, c) => from + (MAGMA[low + 1][c] - from) * part);
}

// How wide so many seconds are.
function lasting(heard, seconds) {
  return `${Math.min(1, seconds / heard.seconds) * 100}%`;
}

// Puts an element from one second to another.
function during(element, heard, start, end) {
  element.style.left = lasting(heard, start);
  element.style.width = lasting(heard, end - start);
  return element;
}

// Labels at heights from 0, the foot of the track, to 1.
function heights(labels) {
  return labels.map(([height, name]) => {
    const mark = make("span", {}, name);
    mark.style.bottom = `${height * 100}%`;
    return mark;
  });
}

function spectrogram(heard) {
  const raw = bytes(heard.spectrogram),
    bins = heard.bins,
    frames = raw.length / bins;
  const canvas = make("canvas", {
    width: frames,
    height: bins,
    class: "spectrogram",
    role: "img",
    "aria-label": say("Spectrogram"),
  });
  const image = new ImageData(Math.max(1, frames), bins),
    colours = [...Array(256).keys()].map(magma);
  raw.forEach((level, at) => {
    const place = (bins - 1 - (at % bins)) * frames + Math.floor(at / bins);
    image.data.set([...colours[level], 255], 4 * place);
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.style.width = lasting(heard, frames * heard.frame);
  return {
    name: heard.unit,
    track: make("div", { class: "track" }, canvas),
    marks: heights(heard.ticks.map(([place, name]) => [place / bins, name])),
  };
}

// The colour of a symbol of CTC, that of the picture; the blank and spaces are grey.
function hue(heard, symbol) {
  return symbol && heard.symbols[symbol].trim() ? `hue-${heard.numbers[symbol] % 6}` : "blank";
}

function posteriors(heard) {
  const raw = bytes(heard.posteriors),
    count = heard.symbols.length,
    vectors = raw.length / count;
  const picture = make("svg:svg", {
    class: "ctc",
    viewBox: `0 0 ${vectors} 1`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": say("How likely CTC finds each symbol over time"),
  });
  const names = [];
  for (let symbol = 0; symbol < count; symbol++) {
    const curve = [...Array(vectors).keys()].map((at) => raw[at * count + symbol] / 255),
      points = curve.map((height, at) => `${at + 0.5},${(1 - height).toFixed(3)}`),
      area = ["0.5,1", ...points, `${vectors - 0.5},1`],
      kind = hue(heard, symbol);
    if (kind !== "blank")
      picture.append(make("svg:polygon", { class: `area ${kind}`, points: area.join(" ") }));
    picture.append(
      make(
        "svg:polyline",
        {
          class: `curve ${kind}`,
          points: points.join(" "),
          "vector-effect": "non-scaling-stroke",
        },
        make("svg:title", {}, symbol ? visible(heard.symbols[symbol]) : say("blank")),
      ),
    );
    if (symbol) names.push(...peaks(curve, visible(heard.symbols[symbol]), kind));
  }
  const inner = make(
    "div",
    { class: "curves" },
    picture,
    make("div", { "aria-hidden": "true" }, names),
  );
  inner.style.width = lasting(heard, vectors * heard.vector);
  return {
    name: "CTC",
    track: make("div", { class: "track ctcs" }, inner),
    marks: heights([
      [0.04, "0"],
      [CURVE, "1"],
    ]),
  };
}

// The name of a symbol above each peak of its curve.
function peaks(curve, name, kind) {
  return curve.flatMap((height, at) => {
    if (height < 0.3 || height < (curve[at - 1] ?? 0) || height <= (curve[at + 1] ?? 0)) return [];
    const label = make("span", { class: `peak ${kind}` }, name);
    label.style.left = `${((at + 0.5) / curve.length) * 100}%`;
    label.style.bottom = `${height * CURVE * 100}%`;
    return [label];
  });
}

// How much each stretch of the sound counts; where the model can be asked again, one can be left out.
function stretches(heard) {
  const spans = heard.stretches.map(([start, end], at) => {
    const span = make(act.leaveOut ? "button" : "i");
    if (act.leaveOut) removable(span, at);
    return during(span, heard, start, end);
  });
  chosen.listeners.push((target) => {
    const values = influence(target),
      parts = shares(target);
    spans.forEach((span, at) => {
      colour(span, parts[at]);
      span.title = influenceText(values[at]);
      if (act.leaveOut) span.setAttribute("aria-label", stretchName(heard.stretches[at]));
    });
  });
  const strip = make(
    "div",
    {
      class: "track strip",
      role: act.leaveOut ? "group" : "img",
      "aria-label": say(`Influence of each stretch on the chosen ${targetKind()}`),
    },
    spans,
  );
  if (act.leaveOut && spans.length) rove(strip, spans);
  return { name: say("influence"), track: strip };
}

function stretchName([start, end]) {
  const times = { start: rounded(start, 2), end: rounded(end, 2) };
  return say("Leave out {start} to {end} seconds", times);
}

// The chosen attention over time: a row for each token.
function attentionLane(heard) {
  const canvas = make("canvas", {
    class: "rows",
    role: "img",
    "aria-label": say("Attention over time, a row for each token"),
  });
  const names = make("div", { class: "row-names" });
  watched.listeners.push(() => {
    const group = groups[watched.group];
    if (!group.timed) return;
    if (canvas.width !== group.keys.length) canvas.width = group.keys.length; // which clears it
    if (canvas.height !== group.queries.length) canvas.height = group.queries.length;
    canvas.style.height = `${Math.max(60, Math.min(320, TOKEN_ROW * group.queries.length))}px`;
    canvas.style.width = lasting(heard, group.keys.length * heard.vector);
    paint(canvas, group, watched.layer, watched.head);
    const labelled = group.queries.length <= 25;
    names.replaceChildren(
      ...(labelled ? group.queries : []).map((token) => make("span", {}, visible(token))),
    );
  });
  return { name: say("attention"), track: make("div", { class: "track" }, canvas), marks: [names] };
}

function axis(heard, second) {
  const step = [0.02, 0.05, 0.1, 0.2, 0.5, 1].find((one) => one * second >= 60) ?? 1;
  const marks = [];
  for (let number = 0; number * step < heard.seconds; number++) {
    const mark = make("span", {}, say("{number} s", { number: Number((number * step).toFixed(2)) }));
    mark.style.left = lasting(heard, number * step);
    marks.push(mark);
  }
  return make("div", { class: "axis quiet", "aria-hidden": "true" }, marks);
}
