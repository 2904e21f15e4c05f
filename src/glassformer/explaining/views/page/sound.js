// A recording that plays: words above, then the lanes, and a head that moves over all of them.

const SECOND = 180, // least pixels of a second
  WIDEST_LINE = 8000, // pixels of a recording
  LETTER = 11, // pixels of a letter of a word
  AUDIBLE = 0.3; // least seconds that are played: CTC may hear a word in a single frame

// Pixels of a second: enough for every word to be read.
function pace(heard) {
  const needed = given.targets.map(({ text, time }) =>
    time ? (text.trim().length * LETTER + 12) / Math.max(0.05, time[1] - time[0]) : 0,
  );
  const wished = Math.min(4 * SECOND, Math.max(SECOND, ...needed));
  return Math.min(wished, WIDEST_LINE / heard.seconds);
}

function player(heard) {
  const audio = make("audio", {
    controls: true,
    preload: "auto",
    src: `data:audio/wav;base64,${heard.wav}`,
  });
  const head = make("div", { class: "playhead" });
  let stopAt = Infinity;
  const follow = () => {
    head.style.left = lasting(heard, audio.currentTime);
    if (audio.currentTime >= stopAt) {
      audio.pause();
      stopAt = Infinity;
    }
    if (!audio.paused) requestAnimationFrame(follow);
  };
  ["play", "seeked", "timeupdate"].forEach((name) => audio.addEventListener(name, follow));
  const play = (start, end) => {
    audio.currentTime = start;
    stopAt = end;
    audio.play().catch(() => {});
  };
  return { audio, head, play };
}

function spokenWords(heard, play) {
  const words = given.targets.map(({ text, time }, at) => {
    if (!time) return null;
    const name = visible(text),
      [start, end] = time,
      times = { word: name, start: rounded(start, 2), end: rounded(end, 2) };
    const button = make(
      "button",
      {
        class: [...name].length > 2 ? "spoken" : "spoken short", // whose letters may stick out
        title: name,
        "aria-label": say("Play {word}, {start} to {end} seconds", times),
        onclick: () => {
          chooseTarget(at);
          const around = Math.max(0, AUDIBLE - (end - start)) / 2;
          play(Math.max(0, start - around), end + around);
        },
      },
      name,
    );
    return during(button, heard, start, end);
  });
  chosen.listeners.push((target) =>
    words.forEach((word, at) => word?.classList.toggle("looking", at === target)),
  );
  return words.filter(Boolean);
}

// The lanes below one another, and over them the chosen word and what is being played.
function timeline(heard, { head, play }) {
  const spoken = spokenWords(heard, play),
    row = make("div", { class: "track words" }, spoken);
  if (spoken.length) rove(row, spoken);
  const lanes = [...(spoken.length ? [{ name: say("words"), track: row }] : []), spectrogram(heard)];
  if (heard.stretches.length === given.pieces.length && heard.stretches.length)
    lanes.push(stretches(heard));
  if (heard.symbols.length) lanes.push(posteriors(heard));
  if (groups.some((group) => group.timed)) lanes.push(attentionLane(heard));
  const word = make("div", { class: "span" }),
    over = make("div", { class: "over", "aria-hidden": "true" }, word, head);
  chosen.listeners.push((target) => {
    const time = given.targets[target].time;
    word.hidden = !time;
    if (time) during(word, heard, ...time);
  });
  const line = make(
    "div",
    { class: "line" },
    lanes.map(({ name, track, marks }) =>
      make(
        "div",
        { class: "lane" },
        make(
          "div",
          { class: marks ? "side-names tall" : "side-names", "aria-hidden": "true" },
          make("span", { class: "lane-name" }, name),
          marks ? make("div", { class: "marks" }, marks) : null,
        ),
        track,
      ),
    ),
    axis(heard, Math.max(pace(heard), 600 / heard.seconds)),
    over,
  );
  line.style.minWidth = `calc(var(--gutter) + ${heard.seconds * pace(heard)}px)`;
  line.addEventListener("click", (event) => {
    const frame = over.getBoundingClientRect(),
      at = (event.clientX - frame.left) / frame.width;
    if (!event.target.closest("button") && at >= 0) play(at * heard.seconds, Infinity);
  });
  return line;
}

// What the colours of the lanes mean.
function soundLegend(heard) {
  const lines = [
    [say("Influence:"), " ", legend()],
    heard.symbols.length
      ? [
          phrase("CTC: {blank} blank, {tokens} tokens, named at their peaks", {
            blank: [make("span", { class: "stroke blank" })],
            tokens: [0, 1, 2].map((hue) => make("span", { class: `stroke hue-${hue}` })),
          }),
        ]
      : null,
  ];
  return make(
    "div",
    { class: "legends quiet" },
    lines.filter(Boolean).map((line) => make("div", {}, line)),
  );
}

function sound() {
  const heard = given.sound,
    playing = player(heard),
    timed = given.targets.some((target) => target.time);
  return section(
    say("What it heard"),
    playing.audio,
    make(
      "div",
      { class: "wide sound", tabindex: 0, role: "group", "aria-label": say("The recording over time") },
      timeline(heard, playing),
    ),
    soundLegend(heard),
    make(
      "p",
      { class: "quiet" },
      timed
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

function timesTable() {
  const rows = given.targets.map(({ text, time, probability }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("bdi", {}, visible(text))),
      make("td", { class: "number" }, time ? time.map((at) => rounded(at, 2)).join(" – ") : "–"),
      make("td", { class: "number" }, percent(probability)),
    ),
  );
  const table = make("table", { class: "values" }, columns("word", "seconds", "how sure"));
  table.append(make("tbody", {}, rows));
  return make("details", {}, make("summary", {}, say("As a table")), table);
}
