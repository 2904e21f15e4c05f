// A recording on one axis of time: words, spectrogram, influence, CTC, attention; all of it plays.

const SECOND = 150; // least pixels
const MAGMA = [
  [0, 0, 4],
  [40, 17, 89],
  [114, 31, 129],
  [182, 54, 121],
  [241, 96, 93],
  [254, 175, 119],
  [252, 253, 191],
];
const TRACK = 120; // pixels of the spectrogram and of CTC

function magma(level) {
  const at = (level / 255) * (MAGMA.length - 1),
    low = Math.min(MAGMA.length - 2, Math.floor(at)),
    part = at - low;
  return MAGMA[low].map((from, c) => from + (MAGMA[low + 1][c] - from) * part);
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
  const ticks = heard.ticks
    .filter(([place]) => place < 0.95 * bins)
    .map(([place, name]) => {
      const tick = make("span", {}, name);
      tick.style.bottom = `${(place / bins) * 100}%`;
      return tick;
    });
  const names = make("div", { class: "ticks", "aria-hidden": "true" }, ticks);
  names.style.width = canvas.style.width;
  return [canvas, names];
}

// How wide so many seconds are.
function lasting(heard, seconds) {
  return `${Math.min(1, seconds / heard.seconds) * 100}%`;
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
  const peaks = [];
  for (let symbol = 0; symbol < count; symbol++) {
    const curve = [...Array(vectors).keys()].map((at) => raw[at * count + symbol] / 255);
    const points = curve.map((height, at) => `${at + 0.5},${(1 - height).toFixed(3)}`).join(" ");
    const kind = symbol ? `hue-${symbol % 6}` : "blank";
    picture.append(
      make(
        "svg:polyline",
        { class: `curve ${kind}`, points, "vector-effect": "non-scaling-stroke" },
        make("svg:title", {}, symbol ? visible(heard.symbols[symbol]) : say("blank")),
      ),
    );
    if (!symbol) continue;
    curve.forEach((height, at) => {
      if (height < 0.3 || height < (curve[at - 1] ?? 0) || height <= (curve[at + 1] ?? 0)) return;
      const name = make("span", { class: `peak ${kind}` }, visible(heard.symbols[symbol]));
      name.style.left = `${((at + 0.5) / vectors) * 100}%`;
      name.style.bottom = `${height * 82}%`;
      peaks.push(name);
    });
  }
  const inner = make(
    "div",
    { class: "curves" },
    picture,
    make("div", { "aria-hidden": "true" }, peaks),
  );
  inner.style.width = lasting(heard, vectors * heard.vector);
  return make("div", { class: "track ctcs" }, inner);
}

function stretches(heard) {
  const spans = heard.stretches.map(([start, end], at) => {
    const span = make(act.leaveOut ? "button" : "i");
    if (act.leaveOut) removable(span, at);
    span.style.left = `${(start / heard.seconds) * 100}%`;
    span.style.width = `${((end - start) / heard.seconds) * 100}%`;
    return span;
  });
  chosen.listeners.push((target) =>
    influence(target).forEach((share, at) => {
      spans[at].classList.toggle("for", share >= 0);
      spans[at].classList.toggle("against", share < 0);
      spans[at].style.setProperty("--share", Math.abs(share).toFixed(3));
      spans[at].title = signed(share * given.influence.scales[target]);
      if (act.leaveOut) spans[at].setAttribute("aria-label", stretchName(heard.stretches[at]));
    }),
  );
  const strip = make(
    "div",
    {
      class: "track strip",
      role: act.leaveOut ? "group" : "img",
      "aria-label": say("Influence of each stretch on the chosen word"),
    },
    spans,
  );
  if (act.leaveOut && spans.length) rove(strip, spans);
  return strip;
}

function stretchName([start, end]) {
  return say("Leave out {start} to {end} seconds", { start: start.toFixed(2), end: end.toFixed(2) });
}

// The chosen attention over time: a row for each token.
function attentionTrack(heard) {
  const canvas = make("canvas", {
    class: "track",
    role: "img",
    "aria-label": say("Attention over time, a row for each token"),
  });
  const names = make("div", { class: "rows", "aria-hidden": "true" });
  watched.listeners.push(() => {
    const group = groups[watched.group];
    if (!group.timed) return;
    if (canvas.width !== group.keys.length) canvas.width = group.keys.length; // which clears it
    if (canvas.height !== group.queries.length) canvas.height = group.queries.length;
    canvas.style.height = `${Math.max(60, Math.min(300, 12 * group.queries.length))}px`;
    canvas.style.width = lasting(heard, group.keys.length * heard.vector);
    paint(canvas, group, watched.layer, watched.head);
    const labelled = group.queries.length <= 25;
    names.replaceChildren(
      ...(labelled ? group.queries : []).map((token) => make("span", {}, visible(token))),
    );
  });
  return make("div", { class: "track" }, canvas, names);
}

function sound() {
  const heard = given.sound,
    audio = make("audio", {
      controls: true,
      preload: "auto",
      src: `data:audio/wav;base64,${heard.wav}`,
    });
  let stopAt = Infinity;
  const play = (start, end) => {
    audio.currentTime = start;
    stopAt = end;
    audio.play().catch(() => {});
  };
  const words = given.targets.map((target, at) => {
    if (!target.time) return null;
    const [start, end] = target.time;
    const button = make(
      "button",
      {
        class: "spoken",
        "aria-label": say("Play {word}, {start} to {end} seconds", {
          word: visible(target.text),
          start: start.toFixed(2),
          end: end.toFixed(2),
        }),
        onclick: () => {
          chooseTarget(at);
          play(start, end);
        },
      },
      visible(target.text),
    );
    button.style.left = `${(start / heard.seconds) * 100}%`;
    button.style.width = `${((end - start) / heard.seconds) * 100}%`;
    return button;
  });
  const spoken = words.filter(Boolean),
    row = make("div", { class: "track words" }, spoken);
  if (spoken.length) rove(row, spoken);
  chosen.listeners.push((target) =>
    words.forEach((word, at) => word?.classList.toggle("looking", at === target)),
  );
  const head = make("div", { class: "playhead", "aria-hidden": "true" });
  const tracks = [
    ...(spoken.length ? [[say("words"), row]] : []),
    [heard.unit, make("div", { class: "track" }, spectrogram(heard))],
  ];
  if (heard.stretches.length === given.pieces.length && heard.stretches.length)
    tracks.push([say("influence"), stretches(heard)]);
  if (heard.symbols.length) tracks.push(["CTC", posteriors(heard)]);
  if (groups.some((group) => group.timed)) tracks.push([say("attention"), attentionTrack(heard)]);
  const line = make(
    "div",
    { class: "line" },
    tracks.map(([name, track]) =>
      make("div", { class: "lane" }, make("span", { class: "quiet lane-name" }, name), track),
    ),
    axis(heard),
    head,
  );
  line.style.minWidth = `${Math.min(heard.seconds * SECOND, 8000)}px`;
  line.addEventListener("click", (event) => {
    if (event.target.closest("button")) return;
    const frame = line.getBoundingClientRect();
    play(((event.clientX - frame.left) / frame.width) * heard.seconds, Infinity);
  });
  const follow = () => {
    head.style.left = `${(audio.currentTime / heard.seconds) * 100}%`;
    if (audio.currentTime >= stopAt) {
      audio.pause();
      stopAt = Infinity;
    }
    if (!audio.paused) requestAnimationFrame(follow);
  };
  ["play", "seeked", "timeupdate"].forEach((name) => audio.addEventListener(name, follow));
  return section(
    say("What it heard"),
    audio,
    make(
      "div",
      { class: "wide sound", tabindex: 0, role: "group", "aria-label": say("The recording over time") },
      line,
    ),
    make(
      "p",
      { class: "quiet" },
      spoken.length
        ? say("Choose a word to hear it, or any moment to hear from there on.")
        : say("Choose any moment to hear from there on."),
      act.leaveOut && heard.stretches.length
        ? [" ", say("Choose a stretch of the influence to leave it out.")]
        : null,
    ),
    act.changes,
    verdict(),
    given.written ? timesTable() : influenceTable(),
  );
}

function axis(heard) {
  const second = Math.max(SECOND, 600 / heard.seconds); // pixels, about
  const step = [0.02, 0.05, 0.1, 0.2, 0.5, 1].find((one) => one * second >= 60) ?? 1;
  const marks = [];
  for (let at = 0; at < heard.seconds; at += step) {
    const mark = make("span", {}, say("{number} s", { number: Number(at.toFixed(2)) }));
    mark.style.left = `${(at / heard.seconds) * 100}%`;
    marks.push(mark);
  }
  return make("div", { class: "axis quiet", "aria-hidden": "true" }, marks);
}

function timesTable() {
  const rows = given.targets.map((target) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("bdi", {}, visible(target.text))),
      make(
        "td",
        { class: "number" },
        target.time ? target.time.map((at) => at.toFixed(2)).join(" – ") : "–",
      ),
      make("td", { class: "number" }, percent(target.probability)),
    ),
  );
  const head = make(
    "thead",
    {},
    make(
      "tr",
      {},
      make("th", { scope: "col" }, say("word")),
      make("th", { scope: "col", class: "number" }, say("seconds")),
      make("th", { scope: "col", class: "number" }, say("how sure")),
    ),
  );
  return make(
    "details",
    {},
    make("summary", {}, say("As a table")),
    make("table", { class: "values" }, head, make("tbody", {}, rows)),
  );
}
