// The sections that an explanation has, in reading order.

function sentence(text) {
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/\.?$/, ".");
}

function verdict() {
  if (!given.method) return null;
  const kind = /no better|worse/i.test(given.verdict) ? "verdict doubtful" : "verdict";
  return make(
    "p",
    { class: kind },
    make("b", {}, say(given.method)),
    make("br"),
    say(sentence(given.verdict || "how far it can be trusted on this run was not measured")),
  );
}

// What the page is about.
function question() {
  if (!given.targets.length) return say("There was nothing to explain.");
  if (given.reason) return say("No answer");
  if (given.written) return say(given.sound ? "What it heard, and why" : "What it wrote, and why");
  return phrase("Why {answer}?", { answer: make("bdi", { class: "answer" }, given.prediction) });
}

function heading() {
  const file = given.sound || given.image ? given.input.replace(/^.*\//, "") : "",
    kinds = [say(given.job), say(given.method), file].filter(Boolean).join(" · ");
  return make(
    "header",
    {},
    make("p", { class: "kinds quiet" }, kinds),
    make("h1", {}, question()),
  );
}

function neighbours() {
  const placed = given.neighbours.some((one) => one.where); // a server does not tell
  const head = make(
    "thead",
    {},
    make(
      "tr",
      {},
      make("th", { scope: "col" }, say("training row")),
      make("th", { scope: "col" }, say("target")),
      placed ? make("th", { scope: "col" }, say("where")) : null,
      make("th", { scope: "col", class: "number" }, say("similarity")),
    ),
  );
  const rows = given.neighbours.map((one) =>
    make(
      "tr",
      {},
      make("td", { class: "text", dir: "auto" }, one.text),
      make("td", { dir: "auto" }, one.target),
      placed
        ? make("td", { class: "quiet", title: one.where }, one.where.replace(/^.*\//, ""))
        : null,
      make("td", { class: "number" }, rounded(one.similarity, 2)),
    ),
  );
  return section(
    say("Nearest training rows"),
    make("div", { class: "wide" }, make("table", {}, head, make("tbody", {}, rows))),
    make(
      "p",
      { class: "quiet" },
      say(
        "What the model learned from that is most like this input. A wrong label here may explain a wrong answer.",
      ),
    ),
  );
}

function notes() {
  const names = (note) => note.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));
  const found = given.notes.map((note) => make("li", {}, names(say(note))));
  return found.length ? section(say("Notes"), make("ul", { class: "quiet" }, found)) : null;
}

// Why there is no answer; what the model would guess opens on request.
function abstention(targets) {
  const guess = make("details", { class: "guess" }, make("summary", {}, say("What the model would guess")), targets);
  guess.addEventListener("toggle", () => dispatchEvent(new Event("resize")), { signal });
  const told = act.answered ? null : make("p", {}, say(sentence(given.reason)));
  return make("section", {}, told, guess);
}

// All sections by name, in reading order; null where there is nothing to show.
function sections() {
  const found = { heading: heading(), answer: null, reasons: null };
  if (given.targets.length) {
    const targets = given.written ? [writtenWords(), act.brief ? null : alternatives()] : [labels()];
    const title = say(given.written ? "Written, and how sure" : "Labels");
    found.answer = given.reason ? abstention(targets) : section(title, ...targets);
  }
  if (given.sound) found.reasons = sound();
  else if (given.targets.length)
    found.reasons = section(
      targetName(given.reading.title),
      ...(given.image ? imagePieces() : pieces()),
      verdict(),
      influenceTable(),
    );
  found.attention = given.attention.groups.length ? attention() : null;
  found.beam = given.beam.length ? beam() : null;
  found.neighbours = given.neighbours.length ? neighbours() : null;
  found.notes = notes();
  if (given.targets.length) chooseTarget(0);
  return found;
}

return sections();
