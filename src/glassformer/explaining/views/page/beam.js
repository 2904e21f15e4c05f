// The beam, step by step: the hypotheses that were kept, each joined to the one it extends.

const STEP = Math.min(104, Math.max(80, 816 / (given.beam.length || 1))), // pixels from one step
  ROW = 38, // to the next, and from one branch to the next
  LETTERS = Math.floor(STEP / 9.4); // of a token

function knot(step, branch) {
  return [step * STEP + 10, branch * ROW + 26];
}

// The line from a branch to the one that it extends.
function twig(branch, step, at) {
  if (!step || branch.parent == null) return null;
  const [x, y] = knot(step, at),
    [from, level] = knot(step - 1, branch.parent),
    bend = STEP * 0.3;
  return make("svg:path", {
    class: branch.kept ? "twig kept" : "twig",
    d: `M${from} ${level}H${x - 2 * bend}C${x - bend} ${level} ${x - bend} ${y} ${x} ${y}`,
  });
}

function leaf(branch, step, at) {
  const [x, y] = knot(step, at),
    name = visible(branch.token),
    letters = [...name],
    kept = branch.kept ? " kept" : "";
  const text = make(
    "svg:text",
    { class: `branch${kept}`, x: x - 4, y: y - 9 },
    letters.length > LETTERS ? letters.slice(0, LETTERS - 1).join("") + "…" : name,
  );
  text.append(make("svg:title", {}, say("{name}, score {score}", { name, score: score(branch) })));
  return [make("svg:circle", { class: `knot${kept}`, cx: x, cy: y, r: kept ? 4 : 3 }), text];
}

// A step of the tree; the way to the answer is drawn above the others.
function stepOfTree(step, number) {
  const twigs = step.map((branch, at) => twig(branch, number, at)),
    order = [...step.keys()].sort((a, b) => step[a].kept - step[b].kept);
  const leaves = order.flatMap((at) => leaf(step[at], number, at));
  return make("svg:g", {}, order.map((at) => twigs[at]).filter(Boolean), leaves);
}

function beam() {
  const steps = given.beam,
    kept = steps.findLastIndex((step) => step.some((branch) => branch.kept)),
    last = kept < 0 ? steps.length - 1 : kept, // the answer may have ended before the others
    layers = steps.map(stepOfTree);
  const tree = make(
    "svg:svg",
    {
      class: "tree",
      width: steps.length * STEP,
      height: Math.max(...steps.map((step) => step.length)) * ROW + 4,
      role: "img",
      "aria-label": say("The hypotheses of the beam by step"),
    },
    layers,
  );
  const slider = make("input", {
    type: "range",
    min: 1,
    max: steps.length,
    value: last + 1,
    "aria-label": say("Step of the beam"),
  });
  const list = make("tbody"),
    caption = make("caption", { class: "quiet", "aria-live": "polite" });
  const show = () => {
    const step = Number(slider.value) - 1;
    layers.forEach((layer, number) => layer.classList.toggle("later", number > step));
    caption.textContent = say("Step {step} of {steps}", {
      step: step + 1,
      steps: steps.length,
    });
    list.replaceChildren(
      ...steps[step].map((branch, at) =>
        make(
          "tr",
          { class: branch.kept ? "kept" : "" },
          make(
            "td",
            {},
            make("bdi", {}, hypothesis(step, at)),
            branch.kept ? make("span", { class: "quiet" }, " ← ", say("the answer")) : null,
          ),
          make("td", { class: "number" }, score(branch)),
        ),
      ),
    );
    const box = tree.parentElement;
    const before = Math.ceil(step + 1.5 - (box?.clientWidth ?? 0) / STEP); // steps out of sight
    if (box) box.scrollLeft = Math.max(0, before) * STEP;
  };
  slider.addEventListener("input", show);
  const move = (by) => {
    slider.value = Number(slider.value) + by;
    show();
  };
  const head = columns("hypothesis", "score");
  const found = section(
    say("Beam"),
    make(
      "div",
      { class: "steps" },
      make(
        "button",
        { class: "small", onclick: () => move(-1), "aria-label": say("Previous step") },
        "‹",
      ),
      slider,
      make("button", { class: "small", onclick: () => move(1), "aria-label": say("Next step") }, "›"),
    ),
    make(
      "div",
      { class: "wide", tabindex: 0, role: "group", "aria-label": say("Tree of hypotheses") },
      tree,
    ),
    make("div", { class: "wide" }, make("table", { class: "values" }, caption, head, list)),
  );
  requestAnimationFrame(show);
  addEventListener("resize", show, { signal }); // it may have been hidden until then
  return found;
}

function score(branch) {
  return (branch.score < 0 ? "−" : "") + rounded(Math.abs(branch.score), 2);
}

// The text of a hypothesis: its last token, and those of its parents.
function hypothesis(step, branch) {
  const tokens = [];
  for (let number = step, at = branch; number >= 0 && at != null; number--) {
    tokens.unshift(given.beam[number][at].token);
    at = given.beam[number][at].parent;
  }
  const bare = !given.beam.some((one) => one.some((other) => /\s/.test(other.token)));
  return tokens.join(bare && given.prediction.includes(" ") ? " " : "");
}
