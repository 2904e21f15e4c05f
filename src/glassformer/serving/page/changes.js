// What changes without some pieces: the model is asked again, and both answers are set side by side.

import { ask } from "./api.js";
import { Attempt } from "./attempt.js";
import { bar, make, percent, visible } from "./elements.js";
import { words } from "./language.js";
import { silenced } from "./wav.js";

const SHOWN = 5; // labels
const attempts = new WeakMap(); // by box: a newer question ends the one before

export function changes(box, model, values, gone) {
  if (!attempts.has(box)) attempts.set(box, new Attempt());
  const attempt = attempts.get(box);
  if (!gone.length) {
    attempt.stop();
    return box.replaceChildren();
  }
  const found = make("div");
  box.replaceChildren(attempt.box, found);
  return attempt.run(async (signal) => {
    const second = await again(model, values, gone, signal);
    found.replaceChildren(make("h3", {}, ...without(values, gone)), ...compared(values, second));
    box.scrollIntoView({ block: "nearest" });
  });
}

function without(values, gone) {
  const named = values.sound
    ? [words.stretches(gone.length)]
    : gone.flatMap((at, n) => [
        n ? words.comma : "",
        make("bdi", { class: "answer" }, visible(values.pieces[at])),
      ]);
  return [words.without, " ", ...named];
}

// The model's answer to what is left.
async function again(model, values, gone, signal) {
  const path = model.paths[0];
  if (values.sound) {
    const form = new FormData();
    form.append("model", model.id);
    const stretches = gone.map((at) => values.sound.stretches[at]);
    form.append("file", silenced(values.sound.wav, stretches), "recording.wav");
    const found = await ask(path, form, signal);
    return guessed(found.data?.[0] ?? { prediction: found.text });
  }
  const kept = (pieces) => pieces.filter((_, at) => !gone.includes(at)).join("");
  if (path.endsWith("/completions")) {
    const body = { model: model.id, prompt: kept(promptPieces(values, gone)) };
    const { choices } = await ask(path, { ...body, max_tokens: values.targets.length || 16 }, signal);
    return { prediction: choices[0].text };
  }
  const { data } = await ask(path, { model: model.id, input: kept(values.pieces) }, signal);
  return guessed(data[0]);
}

// An answer, or what the model would guess where it gives none.
function guessed(found) {
  return found.guess ?? found;
}

// The pieces of the prompt; if some of what was written is left out, that, too.
function promptPieces(values, gone) {
  let length = 0;
  const ends = values.pieces.map((piece) => (length += piece.length));
  const prompt = ends.filter((end) => end <= values.input.length).length;
  return gone.some((at) => at >= prompt) ? values.pieces : values.pieces.slice(0, prompt);
}

function compared(values, second) {
  if (!values.written && second.probabilities) return [labels(values, second)];
  const same = values.prediction.trim() === second.prediction.trim();
  return [
    make(
      "p",
      { class: "said", dir: "auto" },
      same ? second.prediction : difference(values.prediction, second.prediction),
    ),
    make("p", { class: "quiet" }, same ? words.unchanged : words.changed),
  ];
}

// The likeliest labels of both answers, before and after.
function labels(values, second) {
  const first = Object.fromEntries(values.targets.map((one) => [one.text, one.probability]));
  const later = second.probabilities,
    most = (name) => Math.max(first[name] ?? 0, later[name] ?? 0);
  const names = Object.keys(later)
    .sort((a, b) => most(b) - most(a))
    .slice(0, SHOWN);
  const rows = names.map((name) =>
    make(
      "tr",
      { class: name === second.prediction ? "kept" : "" },
      make("th", { scope: "row" }, make("bdi", {}, name)),
      ...[first[name] ?? 0, later[name]].map((share) =>
        make("td", {}, make("span", { class: "share" }, bar(share), percent(share))),
      ),
    ),
  );
  return make(
    "table",
    { class: "values" },
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        [words.label, words.before, words.after].map((name) => make("th", { scope: "col" }, name)),
      ),
    ),
    make("tbody", {}, rows),
  );
}

// The second text; what is not in the first stands out, what is missing is struck through.
function difference(first, second) {
  const [a, b] = [first, second].map((text) => text.match(/\p{L}+|\p{N}|\s+|[^\p{L}\p{N}\s]/gu) ?? []);
  const length = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      length[i][j] =
        a[i] === b[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
  const found = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) (found.push(a[i++]), j++);
    else if (j >= b.length || (i < a.length && length[i + 1][j] >= length[i][j + 1]))
      found.push(make("del", {}, a[i++]));
    else found.push(make("ins", {}, b[j++]));
  }
  return found;
}
