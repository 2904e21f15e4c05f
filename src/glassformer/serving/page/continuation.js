// The desk of a model that continues texts: tokens appear as they are written, each with what else
// was likely, and from any of them it can go another way.

import { stream } from "./api.js";
import { Attempt } from "./attempt.js";
import { bar, make, percent, rove, visible } from "./elements.js";
import { Inside } from "./inside.js";
import { say, words } from "./language.js";
import { textInput } from "./text-input.js";

const PATH = "/v1/completions";
const OTHERS = 6; // tokens that are shown as alternatives
const SEEDS = 1 << 30;

export function continuationDesk(model) {
  const job = words.jobs[model.job] ?? words.jobs.other,
    attempt = new Attempt(),
    flow = make("p", { class: "flow", dir: "auto" }),
    others = make("div", { class: "others", "aria-live": "polite" }),
    tools = make("div", { class: "row" }),
    spoken = make("p", { class: "unseen", role: "status" }),
    unknown = make("div"), // that nothing of the prompt is known
    parts = [unknown, flow, tools, others, spoken],
    reply = make("section", { class: "reply", "aria-label": words.answer }, parts);
  let prompt = "",
    tokens = [],
    line = null, // the element that holds the tokens
    turn = 0;
  reply.hidden = true;

  // Writes on after the tokens that are kept; `more` may have a seed.
  function write(kept, more = {}) {
    const body = { model: model.id, prompt: prompt + join(kept), stream: true, logprobs: OTHERS };
    reply.hidden = false;
    unknown.replaceChildren();
    inside.clear();
    return attempt.run(async (signal, alive) => {
      const own = (turn += 1),
        halt = new AbortController(), // by a reader, to whom what is there is enough
        either = AbortSignal.any([signal, halt.signal]);
      begin(kept, () => halt.abort());
      try {
        for await (const { choices } of stream(PATH, { ...body, ...more }, either)) {
          alive();
          choices.forEach(add);
        }
      } catch (error) {
        if (!halt.signal.aborted) throw error;
      } finally {
        if (own === turn) end();
      }
      const values = await inside.show({ input: prompt, target: join(tokens) });
      if (own === turn && values?.reason) unknown.replaceChildren(unseen(values.reason));
    });
  }

  function begin(kept, stop) {
    tokens = [...kept];
    line = make("span");
    flow.replaceChildren(make("span", { class: "prompt" }, prompt), line);
    tokens.forEach((_, at) => append(at));
    others.replaceChildren();
    spoken.textContent = "";
    tools.replaceChildren(button(words.stop, stop));
  }

  function end() {
    const buttons = [...line.children];
    if (buttons.length)
      rove(line, buttons, { choose: (at) => choose(Number(buttons[at].dataset.at)) });
    spoken.textContent = words.written(tokens.length);
    tools.replaceChildren(
      button(words.another, () => write([], { seed: Math.floor(Math.random() * SEEDS) })),
      buttons.length ? make("span", { class: "quiet" }, words.chooseToken) : "",
    );
  }

  // Tokens whose letters came together stand together: half a character is none.
  function add({ text, logprobs }) {
    const names = logprobs?.tokens ?? [],
      whole = names.join("") === text;
    names.forEach((name, at) => {
      const last = at === names.length - 1;
      tokens.push({
        text: whole ? name : last ? text : "",
        share: Math.exp(logprobs.token_logprobs[at]),
        others: Object.entries(logprobs.top_logprobs[at] ?? {}),
      });
      append(tokens.length - 1);
    });
    if (!names.length && text) append(tokens.push({ text, share: 1, others: [] }) - 1);
  }

  function append(at) {
    const token = tokens[at];
    if (!token.text) return;
    const element = make(
      "span", // a button would not break over lines
      {
        class: token.taken ? "word taken" : "word",
        role: "button",
        tabindex: -1,
        onclick: () => choose(at),
        title: percent(token.share),
        "aria-label": `${visible(token.text)}, ${percent(token.share)}`,
      },
      withLineEnds(token.text),
    );
    element.style.setProperty("--doubt", (1 - token.share).toFixed(3));
    element.dataset.at = at;
    line.append(element);
  }

  function choose(at) {
    for (const one of line.children)
      one.classList.toggle("looking", Number(one.dataset.at) === at);
    const token = tokens[at];
    const rows = [[token.text, token.share, true]].concat(
      token.others
        .map(([text, score]) => [text, Math.exp(score), false])
        .filter(([text]) => text !== token.text),
    );
    rows.sort((a, b) => b[1] - a[1]);
    others.replaceChildren(
      make("h2", {}, words.instead),
      make("div", { class: "alternatives" }, rows.map(([...row]) => other(at, ...row))),
    );
  }

  function other(at, text, share, chosen) {
    const go = () =>
      write([...tokens.slice(0, at), { ...tokens[at], text, share, taken: true }]);
    return make(
      chosen ? "div" : "button",
      {
        class: chosen ? "alternative chosen" : "alternative",
        type: chosen ? null : "button",
        onclick: chosen ? () => {} : go,
        title: chosen ? null : words.goOn,
      },
      make("bdi", {}, visible(text)),
      bar(share),
      make("span", { class: "number" }, percent(share)),
    );
  }

  const input = textInput({
    label: job.label,
    hint: job.hint,
    onask: (text) => {
      prompt = text;
      write([]);
    },
  });
  const inside = new Inside(model, { brief: true });
  return { parts: [input.box, attempt.box, reply, inside.box], focus: input.focus };
}

// What was written is but a guess: nothing it begins with was seen in training.
function unseen(reason) {
  const told = reason.charAt(0).toUpperCase() + reason.slice(1) + ".";
  return make("p", { class: "said empty" }, say(told), " ", words.onlyGuess);
}

// Line ends can be seen, and chosen.
function withLineEnds(text) {
  return text
    .split("\n")
    .flatMap((part, at) => (at ? [make("span", { class: "line-end" }, "↵"), "\n", part] : [part]));
}

function button(label, onclick) {
  return make("button", { class: "plain", type: "button", onclick }, label);
}

function join(tokens) {
  return tokens.map((token) => token.text).join("");
}
