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
    make("b", {}, given.method),
    make("br"),
    sentence(given.verdict || "how far it can be trusted on this run was not measured"),
  );
}

function heading() {
  const kinds = make(
    "p",
    { class: "kinds quiet" },
    [given.job, given.method, given.sound ? given.input : ""].filter(Boolean).join(" · "),
  );
  const answer = given.written
    ? [make("h1", {}, given.sound ? "What it heard, and why" : "What it wrote, and why")]
    : [make("h1", {}, "Why ", make("bdi", { class: "answer" }, given.prediction), "?")];
  return make("header", {}, kinds, answer);
}

function neighbours() {
  const head = make(
    "thead",
    {},
    make(
      "tr",
      {},
      ["training row", "target", "where", "similarity"].map((name, at) =>
        make("th", { scope: "col", class: at === 3 ? "number" : "" }, name),
      ),
    ),
  );
  const rows = given.neighbours.map((one) =>
    make(
      "tr",
      {},
      make("td", { class: "text", dir: "auto" }, one.text),
      make("td", { dir: "auto" }, one.target),
      make("td", { class: "quiet", title: one.where }, one.where.replace(/^.*\//, "")),
      make("td", { class: "number" }, one.similarity.toFixed(2)),
    ),
  );
  return section(
    "Nearest training rows",
    make("div", { class: "wide" }, make("table", {}, head, make("tbody", {}, rows))),
    make(
      "p",
      { class: "quiet" },
      "What the model learned from that is most like this input. A wrong label here may explain a wrong answer.",
    ),
  );
}

function notes() {
  const found = given.notes.map((note) => make("li", {}, note));
  return found.length ? section("Notes", make("ul", { class: "quiet" }, found)) : null;
}

function build() {
  const parts = [heading()];
  if (given.targets.length) {
    const targets = given.written ? [writtenWords(), alternatives()] : [labels()];
    parts.push(section(given.written ? "Written, and how sure" : "Labels", ...targets));
  }
  if (given.sound) parts.push(sound());
  else if (given.targets.length)
    parts.push(section(targetName("What speaks for "), ...pieces(), verdict(), influenceTable()));
  if (given.attention.groups.length) parts.push(attention());
  if (given.beam.length) parts.push(beam());
  if (given.neighbours.length) parts.push(neighbours());
  parts.push(notes());
  document.getElementById("page").replaceChildren(...parts.filter(Boolean));
  if (given.targets.length) chooseTarget(0);
}

build();
