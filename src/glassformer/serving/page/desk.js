// The desk of one model: something to ask with, its answer, and the views on it.

import { Attempt } from "./attempt.js";
import { ask } from "./api.js";
import { continuationDesk } from "./continuation.js";
import { make, percent } from "./elements.js";
import { imageInput } from "./image-input.js";
import { Inside } from "./inside.js";
import { number, say, words } from "./language.js";
import { soundInput } from "./sound-input.js";
import { textInput } from "./text-input.js";

const GAPS = { pretrain: "<mask>" }; // what stands for a missing word

export function desk(model) {
  const own = model.paths[0];
  const build = own.endsWith("/completions")
    ? continuationDesk
    : own.startsWith("/v1/audio/")
      ? fileDesk(soundInput)
      : own.startsWith("/v1/images/")
        ? fileDesk(imageInput)
        : textDesk;
  const { parts, focus } = build(model, own);
  return {
    box: make("article", { class: "desk" }, heading(model), parts),
    focus,
  };
}

export function heading(model) {
  return make(
    "header",
    { class: "title" },
    make("h1", {}, make("bdi", {}, model.id)),
    make("p", { class: "quiet" }, words.jobs[model.job]?.does ?? say(model.job)),
  );
}

function replyBox() {
  return make("section", { class: "reply", "aria-live": "polite", "aria-label": words.answer });
}

function textDesk(model, path) {
  const attempt = new Attempt(),
    reply = replyBox(),
    gap = GAPS[model.job],
    job = words.jobs[model.job] ?? words.jobs.other;
  // The model's own answer, or one that starts as a reader wants it to.
  const go = (text, prefix = "") =>
    attempt.run(async (signal) => {
      const body = { model: model.id, input: text, ...(prefix && { prefix }) };
      const { data } = await awaited(ask(path, body, signal), { attempt, signal, reply, inside });
      reply.replaceChildren(asked(text), ...answer(data[0], prefix, () => go(text)));
      if (!data[0].prediction && !data[0].guess) return inside.clear();
      inside.show({ input: text, ...(prefix && { target: data[0].prediction }) });
    });
  const take = (values, at, other) => {
    const begun = before(values, at) + other.replace(/…$/, "");
    if (model.options.includes("prefix")) go(values.input, begun);
    else inside.show({ input: values.input, target: gap ? other : begun + after(values, at) });
  };
  const input = textInput({
    label: job.label,
    hint: job.hint,
    gap,
    onask: (text) => go(text),
  });
  const inside = new Inside(model, { take });
  return { parts: [input.box, attempt.box, reply, inside.box], focus: input.focus };
}

// For models that take a file: a recording or a picture.
const fileDesk = (makeInput) => (model, path) => {
  const attempt = new Attempt(),
    reply = replyBox();
  let file = null;
  const go = (given) =>
    attempt.run(async (signal) => {
      file = given;
      const form = new FormData();
      form.append("model", model.id);
      form.append("file", given, "file");
      const found = await awaited(ask(path, form, signal), { attempt, signal, reply, inside });
      const [first] = found.data ?? [{ ...found, prediction: found.text }];
      reply.replaceChildren(given.name ? asked(given.name) : "", ...answer(first));
      if (first.prediction) inside.show({ file });
      else inside.clear();
    });
  const take = (values, at, other) =>
    inside.show({ file, target: before(values, at) + other + after(values, at) });
  const input = makeInput({ onask: go });
  const inside = new Inside(model, { take });
  return { parts: [input.box, attempt.box, reply, inside.box], focus: input.focus };
};

// What was answered before is dim while its successor is awaited, and gone if there is none.
async function awaited(request, { attempt, signal, reply, inside }) {
  reply.setAttribute("aria-busy", true);
  inside.dim(true);
  try {
    return await request;
  } catch (error) {
    if (!signal.aborted) {
      reply.replaceChildren();
      inside.clear();
    }
    throw error;
  } finally {
    if (attempt.isNewest(signal)) {
      reply.removeAttribute("aria-busy");
      inside.dim(false);
    }
  }
}

// What an answer is to.
function asked(text) {
  return make("p", { class: "asked", dir: "auto" }, text);
}

function answer(found, prefix, back) {
  if (found.guess) return abstention(found.reason, answer(found.guess, prefix, back));
  const sure = sureness(found);
  const text = found.prediction || words.nothing;
  return [
    make("p", { class: found.prediction ? "said" : "said empty", dir: "auto" }, text),
    sure ? make("p", { class: "quiet" }, sure) : null,
    found.items ? ranking(found.items) : null,
    prefix
      ? make(
          "p",
          { class: "quiet" },
          words.startedWith(prefix),
          " ",
          make("button", { class: "plain", type: "button", onclick: back }, words.ownAnswer),
        )
      : null,
  ].filter(Boolean);
}

// How sure an answer is: of one that was written, what validation rows say of such answers, or else
// how likely the model finds the whole of it.
function sureness({ confidence, validation, probability }) {
  if (validation && !validation.rows) return words.unlikely;
  if (validation) return words.validated(number(validation.right), number(validation.rows));
  if (probability != null) return words.likely(percent(probability));
  return confidence == null ? null : words.sure(percent(confidence));
}

// Why there is no answer; what the model would guess opens on request.
export function abstention(reason, guess) {
  const told = reason.charAt(0).toUpperCase() + reason.slice(1) + ".";
  return [
    make("p", { class: "said empty" }, words.noAnswer, " ", say(told)),
    make("details", { class: "guess" }, make("summary", {}, words.guess), guess),
  ];
}

// What is recommended, best first, with the number that it is ranked by.
function ranking(items) {
  return make(
    "ol",
    { class: "ranking" },
    items.map(({ item, caption, ...ranked }) => {
      const [[name, value]] = Object.entries(ranked);
      const shown = name === "probability" ? percent(value) : value.toFixed(2);
      return make("li", {}, make("bdi", {}, caption || item), " ", make("span", { class: "quiet" }, shown));
    }),
  );
}

// Where each written word begins in the answer.
function places(values) {
  let from = 0;
  return values.targets.map((target) => {
    const word = target.text.trim(),
      found = Math.max(from, values.prediction.indexOf(word, from));
    from = found + word.length;
    return [found, from];
  });
}

function before(values, at) {
  return values.prediction.slice(0, places(values)[at][0]);
}

function after(values, at) {
  return values.prediction.slice(places(values)[at][1]);
}
