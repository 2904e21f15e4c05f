// The targets to choose from, and the pieces coloured by their influence on the chosen one.
// Where the page can ask the model again, a piece can be left out, and another token be taken.

function labels() {
  const buttons = given.targets.map((target, at) =>
    make(
      "button",
      {
        class: "label",
        role: "radio",
        onclick: () => chooseTarget(at),
        "aria-label": `${target.text}, ${percent(target.probability)}`,
      },
      make("bdi", {}, target.text),
      bar(target.probability),
      make("span", { class: "number" }, percent(target.probability)),
    ),
  );
  return radios(
    make("div", { class: "labels", role: "radiogroup", "aria-label": say("Label") }, buttons),
    buttons,
  );
}

function writtenWords() {
  const buttons = given.targets.map((target, at) => {
    const word = make(
      "button",
      {
        class: "word",
        role: "radio",
        onclick: () => chooseTarget(at),
        title: percent(target.probability),
        "aria-label": say("{word}, {share} sure", {
          word: visible(target.text),
          share: percent(target.probability),
        }),
      },
      visible(target.text),
    );
    word.style.setProperty("--doubt", (1 - target.probability).toFixed(3));
    return word;
  });
  const row = make(
    "div",
    {
      class: "written",
      dir: direction(given.prediction),
      role: "radiogroup",
      "aria-label": say("Written"),
    },
    spaced(buttons),
  );
  return radios(row, buttons);
}

// Words of scripts with spaces are set apart; pieces of a word stay together.
function spaced(buttons) {
  return buttons.flatMap((button, at) =>
    at ? [apart || /^\s/.test(given.targets[at].text) ? " " : "\u200b", button] : [button],
  );
}

function radios(container, buttons) {
  const stop = rove(container, buttons, { choose: chooseTarget });
  chosen.listeners.push((target) => {
    buttons.forEach((button, at) => button.setAttribute("aria-checked", at === target));
    stop(target);
  });
  return container;
}

function alternatives() {
  const box = make("div", { class: "alternatives", "aria-live": "polite" });
  chosen.listeners.push((number) => {
    const target = given.targets[number],
      others = target.alternatives.filter(([text]) => visible(text) !== visible(target.text));
    const rows = [
      [target.text, target.probability, "chosen"],
      ...others.map((one) => [...one, ""]),
    ];
    box.replaceChildren(
      ...rows.map(([text, share, kind]) =>
        make(
          act.take && !kind ? "button" : "div",
          {
            class: `alternative ${kind}`,
            onclick: act.take && !kind ? () => act.take(number, text) : () => {},
            title: act.take && !kind ? say("Go on from here with this") : null,
          },
          make("bdi", {}, visible(text)),
          bar(share),
          make("span", { class: "number" }, percent(share)),
        ),
      ),
      target.entropy == null ? "" : entropy(target.entropy),
      act.take && others.length
        ? make("p", { class: "quiet" }, say("Choose one to go on from there with it."))
        : "",
    );
  });
  return box;
}

// How open a choice was: 0 bits if it was certain, 1 bit as between two that are as likely.
function entropy(bits) {
  return make("p", { class: "quiet" }, say("Entropy of the choice: {bits} bits.", { bits: rounded(bits, 1) }));
}

// What the colours of influence say.
function legend() {
  const swatch = (kind) => make("span", { class: `swatch ${kind}` }, say(kind));
  return given.signed
    ? [swatch("against"), " ", swatch("for"), " ", say(`the chosen ${targetKind()}`)]
    : [scale(say("less"), say("more")), " ", say(given.reading.legend)];
}

function targetKind() {
  return given.written ? "word" : "label";
}

// What hatched pieces are.
function strangeLegend() {
  if (!given.unknown.length) return null;
  return make("p", { class: "legend quiet" }, make("span", { class: "swatch unknown" }, say("hatched")), " ", say("not seen in training"));
}

// The colours from nothing to the most.
function scale(least, most) {
  return make("span", { class: "scale" }, least, make("i"), most);
}

// What the chosen target is called in a title.
function targetName(title) {
  const name = make("bdi", { class: "answer" });
  const shown = (target) => (given.reason ? say("its guess") : visible(given.targets[target].text));
  chosen.listeners.push((target) => (name.textContent = shown(target)));
  return phrase(title, { answer: name });
}

// The pieces that are left out for now; what says how the prediction changes gets all of them.
const gone = new Set();

function removable(element, at) {
  const toggle = () => {
    if (!gone.delete(at)) gone.add(at);
    element.classList.toggle("gone", gone.has(at));
    element.setAttribute("aria-pressed", gone.has(at));
    act.leaveOut([...gone].sort((a, b) => a - b));
  };
  element.setAttribute("role", "button");
  element.setAttribute("aria-pressed", false);
  element.title = say("Leave it out");
  element.addEventListener("click", toggle);
  element.addEventListener("keydown", (event) => {
    if (!["Enter", " ", "Delete", "Backspace"].includes(event.key)) return;
    event.preventDefault();
    toggle();
  });
}

function pieces() {
  const readout = make("p", { class: "readout quiet", "aria-live": "polite" });
  const spans = [],
    flow = make("p", { class: "pieces", dir: direction(given.pieces.join("")) });
  const show = (at) =>
    readout.replaceChildren(
      make("bdi", {}, visible(given.pieces[at])),
      `: ${influenceText(influence(chosen.target)[at])}`,
    );
  given.pieces.forEach((piece, at) => {
    const span = make(
      "span",
      {
        class: given.unknown.includes(at) ? "piece unknown" : "piece",
        onmouseenter: () => show(at),
        onfocus: () => show(at),
      },
      visible(piece),
    );
    if (act.leaveOut) removable(span, at);
    spans.push(span);
    flow.append(...around(piece, span));
  });
  if (spans.length) rove(flow, spans);
  chosen.listeners.push((target) => {
    const values = influence(target),
      parts = shares(target);
    spans.forEach((span, at) => {
      colour(span, parts[at]);
      const strange = given.unknown.includes(at) ? `, ${say("not seen in training")}` : "";
      span.setAttribute(
        "aria-label",
        `${visible(given.pieces[at])}, ${influenceText(values[at])}${strange}`,
      );
    });
    readout.textContent = say("Point at a word to read its influence.");
    if (act.leaveOut) readout.append(" ", say("Click a word to leave it out."));
  });
  if (!spans.length) return [make("p", { class: "quiet" }, say("There was nothing to explain."))];
  return [
    flow,
    make("p", { class: "legend quiet" }, legend()),
    strangeLegend(),
    readout,
    act.changes,
  ];
}

// A piece with the white space around it; where it is nothing else, only its line ends.
function around(piece, span) {
  const core = piece.trim(),
    start = piece.indexOf(core);
  if (!core) return [span, piece.replace(/[^\n]/g, "")];
  return [piece.slice(0, start), span, piece.slice(start + core.length)];
}

function influenceTable() {
  const body = make("tbody"),
    caption = make("caption", { class: "quiet" });
  chosen.listeners.push((target) => {
    caption.textContent = say("Influence on {word}", {
      word: visible(given.targets[target]?.text ?? ""),
    });
    body.replaceChildren(
      ...influence(target).map((value, at) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, make("bdi", {}, visible(given.pieces[at]))),
          make("td", { class: "number" }, influenceText(value)),
        ),
      ),
    );
  });
  const head = columns("piece", "influence");
  return make(
    "details",
    {},
    make("summary", {}, say("As a table")),
    make("div", { class: "wide" }, make("table", { class: "values" }, caption, head, body)),
  );
}
