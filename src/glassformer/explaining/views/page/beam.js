// The beam, step by step: the hypotheses that were kept, each joined to the one it extends.

function beam() {
  const steps = given.beam,
    wide = 104,
    tall = 38,
    most = Math.max(...steps.map((step) => step.length));
  const place = (step, branch) => [step * wide + 10, branch * tall + 26];
  const layers = steps.map((step, number) =>
    make(
      "svg:g",
      {},
      step.flatMap((branch, at) => {
        const [x, y] = place(number, at),
          drawn = [];
        if (number && branch.parent != null) {
          const [px, py] = place(number - 1, branch.parent),
            bend = wide * 0.3;
          drawn.push(
            make("svg:path", {
              class: branch.kept ? "twig kept" : "twig",
              d: `M${px} ${py}H${x - 2 * bend}C${x - bend} ${py} ${x - bend} ${y} ${x} ${y}`,
            }),
          );
        }
        const name = visible(branch.token),
          letters = [...name];
        const text = make(
          "svg:text",
          { class: branch.kept ? "branch kept" : "branch", x: x - 4, y: y - 9 },
          letters.length > 11 ? letters.slice(0, 10).join("") + "…" : name,
        );
        text.append(make("svg:title", {}, `${name}, score ${score(branch)}`));
        return [
          ...drawn,
          make("svg:circle", {
            class: branch.kept ? "knot kept" : "knot",
            cx: x,
            cy: y,
            r: branch.kept ? 4 : 3,
          }),
          text,
        ];
      }),
    ),
  );
  const tree = make(
    "svg:svg",
    {
      class: "tree",
      width: steps.length * wide,
      height: most * tall + 4,
      role: "img",
      "aria-label": "The hypotheses of the beam by step",
    },
    layers,
  );
  const slider = make("input", {
    type: "range",
    min: 1,
    max: steps.length,
    value: steps.length,
    "aria-label": "Step of the beam",
  });
  const list = make("tbody"),
    caption = make("caption", { class: "quiet", "aria-live": "polite" });
  const show = () => {
    const step = Number(slider.value) - 1;
    layers.forEach((layer, number) => layer.classList.toggle("later", number > step));
    caption.textContent = `Step ${step + 1} of ${steps.length}`;
    list.replaceChildren(
      ...steps[step].map((branch, at) =>
        make(
          "tr",
          { class: branch.kept ? "kept" : "" },
          make(
            "td",
            {},
            make("bdi", {}, hypothesis(step, at)),
            branch.kept ? make("span", { class: "quiet" }, " ← the answer") : null,
          ),
          make("td", { class: "number" }, score(branch)),
        ),
      ),
    );
    const box = tree.parentElement;
    if (box) box.scrollLeft = (step + 1.5) * wide - box.clientWidth;
  };
  slider.addEventListener("input", show);
  const move = (by) => {
    slider.value = Number(slider.value) + by;
    show();
  };
  const head = make(
    "thead",
    {},
    make(
      "tr",
      {},
      make("th", { scope: "col" }, "hypothesis"),
      make("th", { scope: "col", class: "number" }, "score"),
    ),
  );
  const found = section(
    "Beam",
    make(
      "div",
      { class: "steps" },
      make(
        "button",
        { class: "small", onclick: () => move(-1), "aria-label": "Previous step" },
        "‹",
      ),
      slider,
      make("button", { class: "small", onclick: () => move(1), "aria-label": "Next step" }, "›"),
    ),
    make(
      "div",
      { class: "wide", tabindex: 0, role: "group", "aria-label": "Tree of hypotheses" },
      tree,
    ),
    make("div", { class: "wide" }, make("table", { class: "values" }, caption, head, list)),
  );
  requestAnimationFrame(show);
  return found;
}

function score(branch) {
  return branch.score.toFixed(2).replace("-", "−");
}

// The text of a hypothesis: its last token, and those of its parents.
function hypothesis(step, branch) {
  const tokens = [];
  for (let number = step, at = branch; number >= 0 && at != null; number--) {
    tokens.unshift(given.beam[number][at].token);
    at = given.beam[number][at].parent;
  }
  const bare = !given.beam.some((one) => one.some((other) => /\s/.test(other.token)));
  return tokens.join(apart && bare ? " " : "");
}
