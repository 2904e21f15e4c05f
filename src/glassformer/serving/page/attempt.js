// An attempt at something that may be slow, refused or cut off: says so calmly, and offers to retry.

import { make } from "./elements.js";
import { useKey } from "./api.js";
import { words } from "./language.js";

const SLOW = 1500; // milliseconds until the page says that it still waits

// Runs `work(signal, alive)`, which calls `alive` when the first part of an answer is there; another
// attempt in the same box ends this one.
export class Attempt {
  constructor(wrong = words.refusals.wrong) {
    this.wrong = wrong; // what to say of a request that the server does not accept
    this.box = make("div", { class: "notices", role: "status" });
  }

  stop() {
    this.controller?.abort();
    clearTimeout(this.timer);
    this.box.replaceChildren();
  }

  async run(work) {
    this.stop();
    const controller = (this.controller = new AbortController()),
      again = () => this.run(work);
    this.timer = setTimeout(() => this.box.replaceChildren(this.waiting()), SLOW);
    try {
      return await work(controller.signal, () => this.arrived());
    } catch (error) {
      if (!controller.signal.aborted) {
        if (!error.kind) console.error(error);
        this.box.replaceChildren(error.kind === "key" ? keyForm(again) : notice(error, again, this.wrong));
      }
    } finally {
      if (this.controller === controller) this.arrived();
    }
  }

  // Whether this is the signal of the newest work.
  isNewest(signal) {
    return this.controller.signal === signal;
  }

  arrived() {
    clearTimeout(this.timer);
    this.box.querySelector(".waiting")?.remove();
  }

  waiting() {
    return make(
      "p",
      { class: "notice waiting" },
      make("span", { class: "pulse", "aria-hidden": "true" }),
      words.stillWorking,
      " ",
      make("button", { class: "plain", type: "button", onclick: () => this.stop() }, words.cancel),
    );
  }
}

function notice(refusal, again, wrong) {
  const button = make("button", { class: "plain", type: "button", onclick: again }, words.retry);
  if (refusal.after) countDown(button, refusal.after);
  const own = refusal.kind === "wrong" && refusal.detail;
  const said = refusal.kind === "wrong" ? wrong : words.refusals[refusal.kind];
  return make(
    "div",
    { class: "notice" },
    make("p", {}, said ?? words.refusals.failed, " ", own ? null : button),
    own ? make("p", { class: "quiet", lang: "en" }, refusal.detail) : null,
  );
}

// The server says how long to wait: until then the button counts the seconds.
function countDown(button, seconds) {
  button.disabled = true;
  button.textContent = words.retryIn(seconds);
  setTimeout(() => {
    if (seconds > 1) return countDown(button, seconds - 1);
    button.disabled = false;
    button.textContent = words.retry;
  }, 1000);
}

function keyForm(again) {
  const input = make("input", {
    type: "password",
    id: "key",
    autocomplete: "off",
    required: true,
    spellcheck: "false",
  });
  const submit = (event) => {
    event.preventDefault();
    useKey(input.value.trim());
    again();
  };
  requestAnimationFrame(() => input.focus());
  return make(
    "form",
    { class: "notice key", onsubmit: submit },
    make("label", { for: "key" }, words.keyAsked),
    make("div", { class: "row" }, input, make("button", { class: "main" }, words.useKey)),
    make("p", { class: "quiet" }, words.keyKept),
  );
}
