// Attention: a layer and head are chosen in a grid of small maps, a token by pointing at it.

// The grid of small maps of a group: layers down, heads across, averages first.
function headGrid(group) {
  const most = Math.max(...group.layers.map((layer) => layer.heads));
  const across = most > 1 ? [EVERY, ...Array(most).keys()] : [EVERY];
  const down = group.layers.length > 1 ? [EVERY, ...group.layers.keys()] : [0];
  const cells = down.flatMap((layer) =>
    across.map((head) => {
      const canvas = make("canvas", {
        width: Math.min(30, group.keys.length),
        height: Math.min(30, group.queries.length),
      });
      const button = make(
        "button",
        {
          class: "head",
          role: "radio",
          "aria-label": nameOf(layer, head),
          title: nameOf(layer, head),
          onclick: () => choose({ layer, head }),
        },
        canvas,
      );
      return { layer, head, canvas, button };
    }),
  );
  const names = across.map((head) =>
    make("span", { class: "quiet" }, head === EVERY ? say("all") : String(head)),
  );
  const rows = down.flatMap((layer, number) => [
    make(
      "span",
      { class: "quiet side" },
      layer === EVERY ? say("all") : String(group.layers[layer].number),
    ),
    ...cells.slice(number * across.length, (number + 1) * across.length).map((cell) => cell.button),
  ]);
  const grid = make(
    "div",
    { class: "heads", role: "radiogroup", "aria-label": say("Layer and head") },
    make("span", { class: "quiet side" }, say("layer ↓ head →")),
    names,
    rows,
  );
  grid.classList.toggle("leftward", !group.timed && direction(group.keys.join(" ")) === "rtl");
  grid.style.gridTemplateColumns = `max-content repeat(${across.length}, 2.25rem)`;
  const buttons = cells.map((cell) => cell.button);
  const stop = rove(grid, buttons, {
    columns: across.length,
    choose: (at) => choose({ layer: cells[at].layer, head: cells[at].head }),
  });
  const update = () =>
    cells.forEach((cell, at) => {
      const on = cell.layer === watched.layer && cell.head === watched.head;
      cell.button.setAttribute("aria-checked", on);
      if (on) stop(at);
    });
  return {
    grid,
    update,
    cells,
    columns: across.length,
    draw: () => cells.forEach((cell) => paint(cell.canvas, group, cell.layer, cell.head)),
  };
}

function firstQuery(group) {
  if (group.queries.length === given.targets.length) return chosen.target;
  const gap = group.queries.indexOf("<mask>");
  if (gap >= 0) return gap;
  const seen = weights(0, group, EVERY, EVERY);
  return seen.length > 1 && seen[0] > 0.999 ? group.queries.length - 1 : 0; // a causal map starts at its end
}

function attention() {
  const stage = make("div"),
    readout = make("p", { class: "readout", "aria-live": "polite" });
  let views = [];
  const update = () => {
    views.forEach((view) => view.update());
    const said = groups[watched.group].timed
      ? [say("Drawn over time, in the last lane of the recording.")]
      : strongest(watched.query);
    readout.replaceChildren(
      ...said,
      make("span", { class: "quiet" }, ` (${nameOf(watched.layer, watched.head)})`),
    );
  };
  const tabs = groups.map((group, at) =>
    make("button", { class: "tab", role: "radio", onclick: () => open(at) }, say(group.title)),
  );
  function open(number) {
    Object.assign(watched, { group: number, layer: EVERY, head: EVERY });
    const group = groups[number];
    if (group.layers.length === 1) watched.layer = 0;
    watched.query = firstQuery(group);
    const grid = headGrid(group);
    const view = given.image ? imageView : tokenView;
    const drawn = () => [view(group), matrixView(group), weightsTable(group)];
    views = [grid, ...(group.timed ? [] : drawn())];
    stage.replaceChildren(
      make("div", { class: "wide" }, grid.grid),
      ...views.slice(1, 2).map((view) => view.box),
      readout,
      ...views.slice(2).map((view) => view.box),
    );
    tabs.forEach((tab, at) => tab.setAttribute("aria-checked", at === number));
    grid.draw();
    choose({});
  }
  watched.listeners.push(update);
  const found = section(
    say("Attention"),
    groups.length > 1
      ? make(
          "div",
          { class: "tabs", role: "radiogroup", "aria-label": say("Part of the model") },
          tabs,
        )
      : null,
    make(
      "p",
      { class: "quiet keys" },
      groups.every((group) => group.timed) ? null : say("Point at a token or use the arrow keys."),
      " ",
      phrase("{heads} choose the head, {layers} the layer.", {
        heads: [make("kbd", {}, "["), " ", make("kbd", {}, "]")],
        layers: [make("kbd", {}, "{"), " ", make("kbd", {}, "}")],
      }),
    ),
    stage,
  );
  if (groups.length > 1) rove(tabs[0].parentElement, tabs, { choose: open });
  found.addEventListener("keydown", (event) => {
    const group = groups[watched.group],
      heads = Math.max(...group.layers.map((layer) => layer.heads));
    const turn = (value, count, step) => ((value + 1 + step + count + 1) % (count + 1)) - 1;
    if ("[]".includes(event.key) && heads > 1)
      choose({ head: turn(watched.head, heads, event.key === "]" ? 1 : -1) });
    if ("{}".includes(event.key) && group.layers.length > 1)
      choose({ layer: turn(watched.layer, group.layers.length, event.key === "}" ? 1 : -1) });
  });
  chosen.listeners.push((target) => {
    if (groups[watched.group].queries.length === given.targets.length) choose({ query: target });
  });
  const redraw = () => {
    views[0].draw?.();
    update();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
  addEventListener("resize", update, { signal });
  requestAnimationFrame(() => {
    open(given.attention.group);
    choose({
      layer: given.attention.layer ?? watched.layer,
      head: given.attention.head ?? watched.head,
    });
  });
  return found;
}
