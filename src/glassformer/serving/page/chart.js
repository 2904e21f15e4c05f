// A small picture of curves over steps; point at it to read the values there.

import { make } from "./elements.js";
import { number, words } from "./language.js";

export function chart(title, lines) {
  const all = lines.flatMap((line) => line.points),
    right = Math.max(...all.map(([step]) => step)),
    left = Math.min(...all.map(([step]) => step)),
    [low, high] = range(all.map(([, value]) => value));
  const x = (step) => (right > left ? (100 * (step - left)) / (right - left) : 50),
    y = (value) => 100 - (100 * (value - low)) / (high - low);
  const curves = lines.map(({ points }, at) =>
    make("svg:polyline", {
      class: `plot hue-${at}${points.length > 1 ? "" : " alone"}`,
      points: [...points, points.at(-1)] // twice, or a single one would not be drawn
        .map(([step, value]) => `${x(step).toFixed(2)},${y(value).toFixed(2)}`)
        .join(" "),
      "vector-effect": "non-scaling-stroke",
    }),
  );
  const picture = make(
    "svg:svg",
    { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    curves,
  );
  const readout = make("figcaption", {}, make("b", {}, title), legend(lines)),
    cursor = make("div", { class: "cursor", hidden: true }),
    field = make("div", { class: "field" }, picture, cursor);
  const point = ({ clientX }) => {
    const frame = field.getBoundingClientRect(),
      step = left + ((clientX - frame.left) / frame.width) * (right - left);
    cursor.hidden = false;
    cursor.style.left = `${x(Math.min(right, Math.max(left, step)))}%`;
    readout.replaceChildren(make("b", {}, title), legend(lines, step));
  };
  field.addEventListener("pointermove", point);
  field.addEventListener("pointerleave", () => {
    cursor.hidden = true;
    readout.replaceChildren(make("b", {}, title), legend(lines));
  });
  return make(
    "figure",
    { class: "chart", role: "group", "aria-label": title },
    readout,
    make(
      "div",
      { class: "plotted" },
      make("div", { class: "bounds", "aria-hidden": "true" }, short(high), make("span", {}, short(low))),
      field,
    ),
    make(
      "div",
      { class: "ends quiet", "aria-hidden": "true" },
      make("span", {}, words.stepAt(number(left))),
      make("span", {}, number(right)),
    ),
  );
}

// The names of the lines, each with its last value, or the one nearest to a step.
function legend(lines, step = Infinity) {
  return make(
    "span",
    { class: "lines" },
    lines.map(({ name, points }, at) => {
      const near = points.reduce((best, one) =>
        Math.abs(one[0] - step) < Math.abs(best[0] - step) ? one : best,
      );
      const [where, value] = step === Infinity ? points.at(-1) : near;
      const place = step === Infinity ? null : make("small", {}, words.stepAt(number(where)));
      const named = lines.length > 1 ? [make("i"), `${name} `] : [];
      return make("span", { class: `hue-${at}` }, named, make("b", {}, short(value)), place);
    }),
  );
}

// From the lowest value to the highest; of a single one, from or to zero.
function range(values) {
  const low = Math.min(...values),
    high = Math.max(...values);
  if (low < high) return [low, high];
  return low ? [Math.min(low, 0), Math.max(low, 0)] : [0, 1];
}

function short(value) {
  return value.toLocaleString(undefined, { maximumSignificantDigits: 3 });
}
