// Attention as a matrix: a row for each token that looks, a column for each that is looked at.
// Where the columns are of a script that runs from right to left, so do they.

const WIDEST = 1024; // pixels of a matrix
const LABELLED = 12; // pixels that a cell needs to have a label

function columnNames(group) {
  const names = group.keys.map((name) =>
    make("span", { class: EAST_ASIAN.test(name) ? "upright" : "" }, make("bdi", {}, visible(name))),
  );
  return make("div", { class: "across", "aria-hidden": "true" }, names);
}

function rowNames(group) {
  const names = group.queries.map((name) => make("span", {}, make("bdi", {}, visible(name))));
  return make("div", { class: "down", "aria-hidden": "true" }, names);
}

function matrixView(group) {
  const canvas = make("canvas", {
    width: Math.min(WIDEST, group.keys.length),
    height: Math.min(WIDEST, group.queries.length),
    role: "img",
    "aria-label": say(
      "Attention: a row for each token that looks, a column for each that is looked at",
    ),
  });
  const longest = Math.max(group.keys.length, group.queries.length),
    size = Math.min(24, Math.max(600 / longest, Math.min(3, WIDEST / longest))),
    labelled = size >= LABELLED,
    way = direction(group.keys.join(" ")),
    across = labelled ? columnNames(group) : make("span"),
    down = labelled ? rowNames(group) : make("span");
  canvas.style.width = `${size * group.keys.length}px`;
  canvas.style.height = `${size * group.queries.length}px`;
  const box = make("div", { class: "matrix" }, make("span"), across, down, canvas);
  box.style.setProperty("--size", `${size}px`);
  canvas.addEventListener("mousemove", ({ offsetX, offsetY }) => {
    const place = (at, pixels, count) =>
      Math.max(0, Math.min(count - 1, Math.floor((at / pixels) * count)));
    const query = place(offsetY, canvas.clientHeight, group.queries.length),
      key = place(offsetX, canvas.clientWidth, group.keys.length); // of a mirrored canvas as well
    if (query !== watched.query) choose({ query });
    const names = [group.queries[query], group.keys[key]].map(visible);
    canvas.title = `${names.join(" → ")}: ${percent(weights(query)[key])}`;
  });
  const most = make("span"),
    bar = make("p", { class: "legend quiet" }, scale("0 %", most));
  const update = () => {
    paint(canvas, group, watched.layer, watched.head);
    most.textContent = percent(Number(canvas.dataset.most));
    [...down.children].forEach((name, at) =>
      name.classList.toggle("looking", at === watched.query),
    );
  };
  const wide = make(
    "div",
    { class: "wide", dir: way, tabindex: 0, role: "group", "aria-label": say("Matrix") },
    box,
  );
  return { box: make("div", {}, wide, bar), update };
}

// What the chosen token looks at, for screen readers; filled when it is opened.
function weightsTable(group) {
  const body = make("tbody"),
    caption = make("caption", { class: "quiet" });
  const fill = () => {
    if (!box.open) return;
    const found = weights(watched.query);
    caption.textContent = say("What {token} looks at: {where}", {
      token: visible(group.queries[watched.query]),
      where: nameOf(watched.layer, watched.head),
    });
    body.replaceChildren(
      ...group.keys.map((name, key) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, make("bdi", {}, visible(name))),
          make("td", { class: "number" }, percent(found[key])),
        ),
      ),
    );
  };
  const table = make("table", { class: "values" }, caption, columns("token", "weight"), body),
    box = make("details", { ontoggle: fill }, make("summary", {}, say("As a table")), table);
  return { box, update: fill };
}
