// Attention between tokens: linked words and a matrix, for the chosen layer, head and token.

const LINKED = 60; // with more tokens or several lines, only the links of the chosen one are drawn

function tokensOf(names, label, pick) {
  const spans = names.map((name, at) =>
    make(
      "span",
      { class: "token", onmouseenter: () => pick?.(at), onfocus: () => pick?.(at) },
      visible(name),
    ),
  );
  const flow = make(
    "div",
    { class: "tokens", dir: direction(names.join(" ")), role: "group", "aria-label": label },
    spans.flatMap((span) => [span, " "]),
  );
  if (pick) rove(flow, spans);
  return { spans, flow };
}

function shade(spans, found) {
  const most = Math.max(1e-9, ...found);
  spans.forEach((span, at) => span.style.setProperty("--share", (found[at] / most).toFixed(3)));
}

function strongest(query) {
  const group = groups[watched.group],
    found = weights(query);
  const best = [...found.keys()]
    .sort((a, b) => found[b] - found[a])
    .slice(0, 5)
    .filter((key) => found[key] > 0);
  const listed = best.flatMap((key, place) => [
    place ? ", " : "",
    make("bdi", {}, visible(group.keys[key])),
    ` ${percent(found[key])}`,
  ]);
  return phrase("{token} looks at {others}", {
    token: make("bdi", {}, visible(group.queries[query])),
    others: listed.length ? listed : [say("nothing")],
  });
}

// The tokens of a group: one row that looks at itself, or the keys above and the queries below.
function tokenView(group) {
  const same =
    group.queries.length === group.keys.length &&
    group.queries.every((name, at) => name === group.keys[at]);
  const pick = (query) => choose({ query });
  const below = tokensOf(group.queries, say("Tokens that look"), pick);
  const above = same ? below : tokensOf(group.keys, say("Tokens that are looked at"));
  const lines = make("svg:svg", { class: "links", "aria-hidden": "true" });
  const box = make(
    "div",
    { class: same ? "looks same" : "looks" },
    lines,
    same ? null : above.flow,
    below.flow,
  );
  const update = () => {
    below.spans.forEach((span, at) => span.classList.toggle("looking", at === watched.query));
    shade(above.spans, weights(watched.query));
    if (!same) link(lines, box, above.spans, below.spans, group);
  };
  return { box, update };
}

function link(lines, box, above, below, group) {
  const frame = box.getBoundingClientRect(),
    short = (spans) => spans.length <= LINKED && spans[0].offsetTop === spans.at(-1).offsetTop;
  const few = short(above) && short(below);
  const drawn = [];
  const middle = (span) => {
    const r = span.getBoundingClientRect();
    return [(r.left + r.right) / 2 - frame.left, r];
  };
  below.forEach((span, query) => {
    if (!few && query !== watched.query) return;
    const [x, at] = middle(span),
      found = weights(query),
      most = Math.max(0.25, ...found);
    found.forEach((weight, key) => {
      const share = weight / most;
      if (share < 0.1) return;
      const [to, top] = middle(above[key]);
      const line = make("svg:line", {
        x1: x,
        y1: at.top - frame.top,
        x2: to,
        y2: top.bottom - frame.top,
        class: query === watched.query ? "link looking" : "link",
      });
      line.style.setProperty("--share", share.toFixed(3));
      drawn.push(line);
    });
  });
  lines.replaceChildren(...drawn);
}
