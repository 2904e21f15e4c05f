// How a run learns, or has learned: its curves, and while it is in training what it answers by now.

import { ask } from "./api.js";
import { Attempt } from "./attempt.js";
import { chart } from "./chart.js";
import { make } from "./elements.js";
import { number, words } from "./language.js";

const AGAIN = 3000; // milliseconds

export function learningView(model) {
  const attempt = new Attempt(),
    curves = make("div", { class: "charts" }),
    progress = make("div", { class: "progress" }),
    samples = make("div", { class: "samples" }),
    box = make("section", { class: "learning" }, attempt.box, progress, curves, samples);
  let timer = null,
    wanted = false,
    drawn = "";
  const path = `/v1/training/${encodeURIComponent(model.id)}`;
  const read = async (signal) => {
    const values = await ask(path, undefined, signal);
    if (JSON.stringify(values) !== drawn) {
      drawn = JSON.stringify(values);
      progress.replaceChildren(...state(values));
      curves.replaceChildren(...values.stages.flatMap(stage));
    }
    if (values.state === "finished" && !model.training) return;
    samples.replaceChildren(...answers((await ask(`${path}/samples`, undefined, signal)).data));
    if (wanted) timer = setTimeout(follow, AGAIN);
  };
  const follow = () => (document.hidden ? (timer = setTimeout(follow, AGAIN)) : attempt.run(read));
  const watch = (on) => {
    if (on === wanted) return;
    wanted = on;
    clearTimeout(timer);
    if (on) follow();
    else attempt.stop();
  };
  return { box, watch };
}

function state({ state, step, steps, troubles, stages }) {
  const far = steps
    ? make("progress", { max: steps, value: step, "aria-label": words.progress })
    : null;
  const at = steps ? words.stepOf(number(step), number(steps)) : words.stepAt(number(step));
  const scoring = state === "training" && steps && step >= steps,
    now = scoring ? words.scoring : words.states[state],
    phase = stages.at(-1)?.pretraining ? words.pretraining : now;
  return [
    make("p", {}, make("b", {}, phase), " · ", at),
    state === "finished" ? null : far,
    troubles.length
      ? make("ul", { class: "quiet", lang: "en" }, troubles.map((one) => make("li", {}, one)))
      : null,
    stages.length ? null : make("p", { class: "quiet" }, words.noCurves),
  ].filter(Boolean);
}

// Losses share a picture; every other score has its own.
function stage({ pretraining, curves }) {
  const names = Object.keys(curves),
    losses = names.filter((name) => name.endsWith(" loss")),
    others = names.filter((name) => !losses.includes(name));
  const title = (name) => [pretraining ? words.pretraining : "", words.score(name)];
  const join = (parts) => parts.filter(Boolean).join(" · ");
  const charts = others.map((name) =>
    chart(join(title(name)), [{ name: words.score(name), points: curves[name] }]),
  );
  if (losses.length)
    charts.unshift(
      chart(
        join([pretraining ? words.pretraining : "", words.loss]),
        losses.map((name) => ({ name: words.score(name), points: curves[name] })),
      ),
    );
  const apart = names.includes("training objective");
  if (apart || losses.length > 1)
    charts.push(make("p", { class: "quiet" }, apart ? words.objective : words.losses));
  return charts;
}

// A picture of a validation row, from its pixels.
function drawn({ width, height, pixels }) {
  const canvas = make("canvas", { class: "picture", width, height, role: "img", "aria-label": words.picture }),
    image = new ImageData(width, height),
    levels = atob(pixels);
  for (let at = 0; at < width * height; at++) {
    const [red, green, blue] = [0, 1, 2].map((n) => levels.charCodeAt(3 * at + n));
    image.data.set([red, green, blue, 255], 4 * at);
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function answers(rows) {
  if (!rows.length) return [];
  return [
    make("h2", {}, words.samples),
    ...rows.map(({ input, picture, target, answers: given }) =>
      make(
        "figure",
        { class: "sample" },
        make("figcaption", { dir: "auto" }, picture ? drawn(picture) : input ?? words.recording),
        make(
          "ol",
          {},
          given.slice(-4).map(({ step, text }, at, all) =>
            make(
              "li",
              { class: at === all.length - 1 ? "newest" : "" },
              make("span", { class: "quiet" }, words.stepAt(number(step))),
              make("bdi", {}, text || words.nothing),
            ),
          ),
          target
            ? make(
                "li",
                { class: "right" },
                make("span", { class: "quiet" }, words.right),
                make("bdi", {}, target),
              )
            : null,
        ),
      ),
    ),
  ];
}
