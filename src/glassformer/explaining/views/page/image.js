// An image: its patches coloured by their influence, and where attention looks.

// The pixels, with a cell over each patch; `cell` makes the attributes of one.
function patched(cell) {
  const { height, width, rows, columns, pixels } = given.image;
  const canvas = make("canvas", { width, height, role: "img", "aria-label": given.input });
  const raw = bytes(pixels),
    image = new ImageData(width, height);
  for (let at = 0; at < width * height; at++)
    image.data.set([raw[3 * at], raw[3 * at + 1], raw[3 * at + 2], 255], 4 * at);
  canvas.getContext("2d").putImageData(image, 0, 0);
  const cells = given.pieces.map((_, at) => make("span", { class: "patch", ...cell(at) }));
  const grid = make("div", { class: "patches" }, cells);
  grid.style.gridTemplate = `repeat(${rows}, 1fr) / repeat(${columns}, 1fr)`;
  const box = make("div", { class: "image" }, canvas, grid);
  box.style.aspectRatio = `${width} / ${height}`;
  return { box, grid, cells };
}

function patchName(at) {
  const { columns } = given.image;
  return say("row {row}, column {column}", {
    row: 1 + Math.floor(at / columns),
    column: 1 + (at % columns),
  });
}

// The image without anything over it, and with the influence of each patch.
function imagePieces() {
  const readout = make("p", { class: "readout quiet", "aria-live": "polite" });
  const show = (at) =>
    (readout.textContent = `${patchName(at)}: ${influenceText(influence(chosen.target)[at])}`);
  const plain = patched(() => ({}));
  const shown = patched((at) => ({ onmouseenter: () => show(at), onfocus: () => show(at) }));
  rove(shown.grid, shown.cells, { columns: given.image.columns });
  chosen.listeners.push((target) => {
    const values = influence(target),
      parts = shares(target);
    shown.cells.forEach((cell, at) => {
      colour(cell, parts[at]);
      cell.setAttribute("aria-label", `${patchName(at)}, ${influenceText(values[at])}`);
    });
    readout.textContent = say("Point at a patch to read its influence.");
  });
  return [
    make("div", { class: "images" }, plain.box, shown.box),
    make("p", { class: "legend quiet" }, legend()),
    readout,
  ];
}

// What the chosen patch looks at, or the class token, where the model has one.
function imageView(group) {
  const first = group.keys.length - given.pieces.length;
  const pick = (at) => choose({ query: at + first });
  const shown = patched((at) => ({ onmouseenter: () => pick(at), onfocus: () => pick(at) }));
  rove(shown.grid, shown.cells, { columns: given.image.columns });
  const button = first
    ? make("button", { class: "tab", onclick: () => choose({ query: 0 }) }, say("The class token"))
    : null;
  const update = () => {
    const found = weights(watched.query).slice(first),
      most = Math.max(1e-9, ...found);
    shown.cells.forEach((cell, at) => {
      cell.classList.add("counts");
      cell.classList.toggle("looking", at + first === watched.query);
      cell.style.setProperty("--share", (found[at] / most).toFixed(3));
    });
  };
  return { box: make("div", { class: "images" }, shown.box, button), update };
}
