// Attention: a layer and head are chosen in a grid of small maps, a token by pointing at it.

const EVERY = -1; // the average over all heads or layers
const LINKED = 60; // with more tokens or several lines, only the links of the chosen one are drawn
const LABELLED = 12; // pixels that a cell of the matrix needs to have a label
const watched = { group: 0, layer: EVERY, head: EVERY, query: 0, listeners: [] };

function unpackLayer(layer) {
  const counts = shorts(layer.counts), starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, row) => (starts[row + 1] = starts[row] + count));
  return { number: layer.number, heads: layer.heads, starts, scales: shorts(layer.scales),
           places: shorts(layer.places), levels: bytes(layer.levels) };
}

const groups = given.attention.groups.map((group) => ({ ...group, layers: group.layers.map(unpackLayer) }));

// Calls `each` with the key and the weight of what a query attends to, averaged as chosen.
function look(group, layer, head, query, each) {
  const layers = layer === EVERY ? group.layers : [group.layers[layer]];
  for (const one of layers) {
    const heads = head === EVERY ? [...Array(one.heads).keys()] : [Math.min(head, one.heads - 1)];
    for (const number of heads) {
      const row = number * group.queries.length + query;
      const unit = one.scales[row] / 65535 / 255 / heads.length / layers.length;
      for (let at = one.starts[row]; at < one.starts[row + 1]; at++) each(one.places[at], one.levels[at] * unit);
    }
  }
}

function weights(query, group = groups[watched.group], layer = watched.layer, head = watched.head) {
  const found = new Float32Array(group.keys.length);
  look(group, layer, head, query, (key, weight) => (found[key] += weight));
  return found;
}

function ink() {
  return getComputedStyle(document.documentElement).getPropertyValue("--heat").split(",").map(Number);
}

// A map drawn into a canvas of one pixel a cell, or fewer pixels than cells: the largest weight counts.
function paint(canvas, group, layer, head) {
  const tall = canvas.height, wide = canvas.width, [red, green, blue] = ink();
  const cells = new Float32Array(tall * wide), row = new Float32Array(group.keys.length);
  for (let query = 0; query < group.queries.length; query++) {
    row.fill(0);
    look(group, layer, head, query, (key, weight) => (row[key] += weight));
    const y = Math.floor((query * tall) / group.queries.length);
    row.forEach((weight, key) => {
      const at = y * wide + Math.floor((key * wide) / group.keys.length);
      if (weight > cells[at]) cells[at] = weight;
    });
  }
  const most = cells.reduce((a, b) => Math.max(a, b), 1e-9), image = new ImageData(wide, tall);
  cells.forEach((weight, at) => image.data.set([red, green, blue, 255 * (weight / most) ** 0.75], 4 * at));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function choose(change) {
  Object.assign(watched, change);
  watched.listeners.forEach((listener) => listener());
}

function nameOf(layer, head) {
  const first = layer === EVERY ? "all layers" : `layer ${groups[watched.group].layers[layer].number}`;
  return `${first}, ${head === EVERY ? "all heads" : `head ${head}`}`;
}

// The grid of small maps of a group: layers down, heads across, averages first.
function headGrid(group) {
  const most = Math.max(...group.layers.map((layer) => layer.heads));
  const across = most > 1 ? [EVERY, ...Array(most).keys()] : [EVERY];
  const down = group.layers.length > 1 ? [EVERY, ...group.layers.keys()] : [0];
  const cells = down.flatMap((layer) => across.map((head) => {
    const canvas = make("canvas", { width: Math.min(30, group.keys.length), height: Math.min(30, group.queries.length) });
    const button = make("button", { class: "head", role: "radio", "aria-label": nameOf(layer, head), title: nameOf(layer, head),
                                    onclick: () => choose({ layer, head }) }, canvas);
    return { layer, head, canvas, button };
  }));
  const names = across.map((head) => make("span", { class: "quiet" }, head === EVERY ? "all" : String(head)));
  const rows = down.flatMap((layer, number) => [
    make("span", { class: "quiet side" }, layer === EVERY ? "all" : String(group.layers[layer].number)),
    ...cells.slice(number * across.length, (number + 1) * across.length).map((cell) => cell.button)]);
  const grid = make("div", { class: "heads", role: "radiogroup", "aria-label": "Layer and head" },
    make("span", { class: "quiet side" }, "layer ↓ head →"), names, rows);
  grid.style.gridTemplateColumns = `max-content repeat(${across.length}, 2.25rem)`;
  const buttons = cells.map((cell) => cell.button);
  const stop = rove(grid, buttons, { columns: across.length, choose: (at) => choose({ layer: cells[at].layer, head: cells[at].head }) });
  const update = () => cells.forEach((cell, at) => {
    const on = cell.layer === watched.layer && cell.head === watched.head;
    cell.button.setAttribute("aria-checked", on);
    if (on) stop(at);
  });
  return { grid, update, cells, columns: across.length, draw: () => cells.forEach((cell) => paint(cell.canvas, group, cell.layer, cell.head)) };
}

function tokensOf(names, label, pick) {
  const spans = names.map((name, at) => make("span", { class: "token", onmouseenter: () => pick?.(at), onfocus: () => pick?.(at) }, visible(name)));
  const flow = make("div", { class: "tokens", dir: direction(names.join(" ")), role: "group", "aria-label": label }, spans.flatMap((span) => [span, " "]));
  if (pick) rove(flow, spans);
  return { spans, flow };
}

function shade(spans, found) {
  const most = Math.max(1e-9, ...found);
  spans.forEach((span, at) => span.style.setProperty("--share", (found[at] / most).toFixed(3)));
}

function strongest(query) {
  const group = groups[watched.group], found = weights(query);
  const best = [...found.keys()].sort((a, b) => found[b] - found[a]).slice(0, 5).filter((key) => found[key] > 0);
  const listed = best.flatMap((key, place) => [place ? ", " : "", make("bdi", {}, visible(group.keys[key])), ` ${percent(found[key])}`]);
  return [make("bdi", {}, visible(group.queries[query])), " looks at ", ...(listed.length ? listed : ["nothing"])];
}

// The tokens of a group: one row that looks at itself, or the keys above and the queries below.
function tokenView(group) {
  const same = group.queries.length === group.keys.length && group.queries.every((name, at) => name === group.keys[at]);
  const pick = (query) => choose({ query });
  const below = tokensOf(group.queries, "Tokens that look", pick);
  const above = same ? below : tokensOf(group.keys, "Tokens that are looked at");
  const lines = make("svg:svg", { class: "links", "aria-hidden": "true" });
  const box = make("div", { class: same ? "looks same" : "looks" }, lines, same ? null : above.flow, below.flow);
  const update = () => {
    below.spans.forEach((span, at) => span.classList.toggle("looking", at === watched.query));
    shade(above.spans, weights(watched.query));
    if (!same) link(lines, box, above.spans, below.spans, group);
  };
  return { box, update };
}

function link(lines, box, above, below, group) {
  const frame = box.getBoundingClientRect(), short = (spans) => spans.length <= LINKED && spans[0].offsetTop === spans.at(-1).offsetTop;
  const few = short(above) && short(below);
  const drawn = [];
  const middle = (span) => { const r = span.getBoundingClientRect(); return [(r.left + r.right) / 2 - frame.left, r]; };
  below.forEach((span, query) => {
    if (!few && query !== watched.query) return;
    const [x, at] = middle(span), found = weights(query), most = Math.max(0.25, ...found);
    found.forEach((weight, key) => {
      const share = weight / most;
      if (share < 0.1) return;
      const [to, top] = middle(above[key]);
      const line = make("svg:line", { x1: x, y1: at.top - frame.top, x2: to, y2: top.bottom - frame.top,
                                      class: query === watched.query ? "link looking" : "link" });
      line.style.setProperty("--share", share.toFixed(3));
      drawn.push(line);
    });
  });
  lines.replaceChildren(...drawn);
}

function matrixView(group) {
  const canvas = make("canvas", { width: group.keys.length, height: group.queries.length, role: "img",
                                  "aria-label": "Attention: a row for each token that looks, a column for each that is looked at" });
  const size = Math.max(3, Math.min(24, 600 / Math.max(group.keys.length, group.queries.length)));
  const across = make("div", { class: "across", "aria-hidden": "true" }), down = make("div", { class: "down", "aria-hidden": "true" });
  if (size >= LABELLED) {
    across.append(...group.keys.map((name) => make("span", { class: EAST_ASIAN.test(name) ? "upright" : "" }, make("bdi", {}, visible(name)))));
    down.append(...group.queries.map((name) => make("span", {}, make("bdi", {}, visible(name)))));
  }
  canvas.style.width = `${size * group.keys.length}px`;
  canvas.style.height = `${size * group.queries.length}px`;
  const box = make("div", { class: "matrix" }, make("span"), across, down, canvas);
  box.style.setProperty("--size", `${size}px`);
  canvas.addEventListener("mousemove", (event) => {
    const query = Math.floor((event.offsetY / canvas.clientHeight) * group.queries.length);
    if (query !== watched.query && query >= 0 && query < group.queries.length) choose({ query });
  });
  const update = () => {
    paint(canvas, group, watched.layer, watched.head);
    [...down.children].forEach((name, at) => name.classList.toggle("looking", at === watched.query));
  };
  return { box: make("div", { class: "wide", tabindex: 0, role: "group", "aria-label": "Matrix" }, box), update };
}

function firstQuery(group) {
  if (group.queries.length === given.targets.length) return chosen.target;
  const seen = weights(0, group, EVERY, EVERY);
  return seen.length > 1 && seen[0] > 0.999 ? group.queries.length - 1 : 0; // a causal map starts at its end
}

function attention() {
  const stage = make("div"), readout = make("p", { class: "readout", "aria-live": "polite" });
  let views = [];
  const update = () => {
    views.forEach((view) => view.update());
    const said = groups[watched.group].timed ? ["Drawn over time, below the spectrogram."] : strongest(watched.query);
    readout.replaceChildren(...said, make("span", { class: "quiet" }, ` (${nameOf(watched.layer, watched.head)})`));
  };
  const tabs = groups.map((group, at) => make("button", { class: "tab", role: "radio", onclick: () => open(at) }, group.title));
  function open(number) {
    Object.assign(watched, { group: number, layer: EVERY, head: EVERY });
    const group = groups[number];
    if (group.layers.length === 1) watched.layer = 0;
    watched.query = firstQuery(group);
    const grid = headGrid(group);
    views = [grid, ...(group.timed ? [] : [tokenView(group), matrixView(group)])];
    stage.replaceChildren(make("div", { class: "wide" }, grid.grid), ...views.slice(1, 2).map((view) => view.box), readout,
      ...views.slice(2).map((view) => view.box));
    tabs.forEach((tab, at) => tab.setAttribute("aria-checked", at === number));
    grid.draw();
    choose({});
  }
  watched.listeners.push(update);
  const found = section("What it looked at", groups.length > 1 ? make("div", { class: "tabs", role: "radiogroup", "aria-label": "Part of the model" }, tabs) : null,
    make("p", { class: "quiet keys" }, "Point at a token, or move with the arrow keys. ", make("kbd", {}, "["), " and ", make("kbd", {}, "]"),
      " choose the head, ", make("kbd", {}, "{"), " and ", make("kbd", {}, "}"), " the layer."), stage);
  if (groups.length > 1) rove(tabs[0].parentElement, tabs, { choose: open });
  found.addEventListener("keydown", (event) => {
    const group = groups[watched.group], heads = Math.max(...group.layers.map((layer) => layer.heads));
    const turn = (value, count, step) => ((value + 1 + step + count + 1) % (count + 1)) - 1;
    if ("[]".includes(event.key) && heads > 1) choose({ head: turn(watched.head, heads, event.key === "]" ? 1 : -1) });
    if ("{}".includes(event.key) && group.layers.length > 1) choose({ layer: turn(watched.layer, group.layers.length, event.key === "}" ? 1 : -1) });
  });
  chosen.listeners.push((target) => {
    if (groups[watched.group].queries.length === given.targets.length) choose({ query: target });
  });
  const redraw = () => { views[0].draw?.(); update(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("resize", update);
  requestAnimationFrame(() => {
    open(given.attention.group);
    choose({ layer: given.attention.layer ?? watched.layer, head: given.attention.head ?? watched.head });
  });
  return found;
}
