// The weights of attention: unpacked, averaged as chosen, and painted.

const EVERY = -1; // the average over all heads or layers
const watched = { group: 0, layer: EVERY, head: EVERY, query: 0, listeners: [] };

function unpackLayer(layer) {
  const counts = shorts(layer.counts),
    starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, row) => (starts[row + 1] = starts[row] + count));
  return {
    number: layer.number,
    heads: layer.heads,
    starts,
    scales: shorts(layer.scales),
    places: shorts(layer.places),
    levels: shorts(layer.levels),
  };
}

const groups = given.attention.groups.map((group) => ({
  ...group,
  layers: group.layers.map(unpackLayer),
}));

// Calls `each` with the key and the weight of what a query attends to, averaged as chosen.
function look(group, layer, head, query, each) {
  const layers = layer === EVERY ? group.layers : [group.layers[layer]];
  for (const one of layers) {
    const heads = head === EVERY ? [...Array(one.heads).keys()] : [Math.min(head, one.heads - 1)];
    for (const number of heads) {
      const row = number * group.queries.length + query;
      const unit = one.scales[row] / 65535 / 65535 / heads.length / layers.length;
      for (let at = one.starts[row]; at < one.starts[row + 1]; at++)
        each(one.places[at], one.levels[at] * unit);
    }
  }
}

function weights(query, group = groups[watched.group], layer = watched.layer, head = watched.head) {
  const found = new Float32Array(group.keys.length);
  look(group, layer, head, query, (key, weight) => (found[key] += weight));
  return found;
}

function ink() {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--heat")
    .split(",")
    .map(Number);
}

// A map drawn into a canvas of a pixel for each weight, or fewer, of which each shows its largest.
// What is there already is not drawn again. The largest weight is noted on the canvas.
function paint(canvas, group, layer, head) {
  const tall = canvas.height,
    wide = canvas.width,
    [red, green, blue] = ink();
  const state = [groups.indexOf(group), layer, head, red].join();
  if (canvas.dataset.state === state) return;
  canvas.dataset.state = state;
  const cells = new Float32Array(tall * wide),
    row = new Float32Array(group.keys.length);
  for (let query = 0; query < group.queries.length; query++) {
    row.fill(0);
    look(group, layer, head, query, (key, weight) => (row[key] += weight));
    const y = Math.floor((query * tall) / group.queries.length);
    row.forEach((weight, key) => {
      const at = y * wide + Math.floor((key * wide) / group.keys.length);
      if (weight > cells[at]) cells[at] = weight;
    });
  }
  const most = cells.reduce((a, b) => Math.max(a, b), 1e-9),
    image = new ImageData(wide, tall);
  cells.forEach((weight, at) =>
    image.data.set([red, green, blue, 255 * (weight / most) ** 0.75], 4 * at),
  );
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.dataset.most = most;
}

function choose(change) {
  Object.assign(watched, change);
  watched.listeners.forEach((listener) => listener());
}

function nameOf(layer, head) {
  const number = groups[watched.group].layers[layer]?.number;
  const first = layer === EVERY ? say("all layers") : say("layer {number}", { number });
  const second = head === EVERY ? say("all heads") : say("head {number}", { number: head });
  return say("{layer}, {head}", { layer: first, head: second });
}
