// Inside of an answer: a view for each question, drawn by the scripts of `explain`.

import { ask } from "./api.js";
import { Attempt } from "./attempt.js";
import { changes } from "./changes.js";
import { draw } from "./drawing.js";
import { make, rove } from "./elements.js";
import { say, words } from "./language.js";
import { learningView } from "./learning.js";

export class Inside {
  // take(values, target, text): what to do when a reader wants another token than the model;
  // brief: whether the desk shows the alternatives of tokens itself.
  constructor(model, { take, brief = false }) {
    Object.assign(this, { model, take, brief, attempt: new Attempt(words.notExplained), chosen: "reasons" });
    this.path = model.paths.find((path) => path.endsWith("/explain"));
    this.list = make("div");
    this.panels = make("div", { class: "panels" });
    this.box = make("section", { class: "inside" }, this.list, this.attempt.box, this.panels);
    this.offer({});
  }

  // Explains the answer to an input or a file; with a target, that answer instead of its own.
  show({ input, file, target }) {
    if (!this.path) return;
    this.dim(true);
    return this.attempt.run(async (signal) => {
      const values = await ask(this.path, this.request(input, file, target), signal)
        .catch((error) => {
          if (!signal.aborted) this.offer({});
          throw error;
        })
        .finally(() => this.attempt.isNewest(signal) && this.dim(false));
      this.drawn?.abort();
      this.drawn = new AbortController();
      const box = make("div", { class: "changes", "aria-live": "polite" });
      const sections = draw(values, {
        say,
        signal: this.drawn.signal,
        act: {
          changes: box,
          brief: this.brief,
          answered: true, // so that it needs not be said twice that there is no answer
          leaveOut: (gone) => changes(box, this.model, values, gone),
          take: this.take && ((at, text) => this.take(values, at, text)),
        },
      });
      this.offer({
        reasons: [sections.answer, sections.reasons, sections.neighbours, sections.notes],
        attention: [sections.attention],
        beam: [sections.beam],
        sound: Boolean(values.sound),
      });
      return values;
    });
  }

  request(input, file, target) {
    const fields = { model: this.model.id, packed: true, ...(target && { target }) };
    if (!file) return { ...fields, input };
    const form = new FormData();
    Object.entries(fields).forEach(([name, value]) => form.append(name, value));
    form.append("file", file, "file");
    return form;
  }

  // The views are of an answer that is being replaced.
  dim(on) {
    if (on) this.box.setAttribute("aria-busy", true);
    else this.box.removeAttribute("aria-busy");
  }

  clear() {
    this.attempt.stop();
    this.offer({});
  }

  // The views that there are now; the one that was open stays open.
  offer({ sound, ...given }) {
    const views = Object.entries(given)
      .map(([name, parts]) => [name, parts.filter(Boolean)])
      .filter(([, parts]) => parts.length);
    this.learning ??= learningView(this.model);
    views.push(["learning", [this.learning.box]]);
    this.tabs = views.map(([name]) =>
      make(
        "button",
        {
          id: `view-${name}`,
          role: "tab",
          type: "button",
          "aria-controls": `panel-${name}`,
          onclick: () => this.open(name),
        },
        name === "reasons" && sound ? words.questions.sound : words.questions[name],
      ),
    );
    const list = make(
      "div",
      { class: "views", role: "tablist", "aria-label": words.views },
      this.tabs,
    );
    this.list.replaceWith(list);
    this.list = list;
    this.names = views.map(([name]) => name);
    this.panels.replaceChildren(
      ...views.map(([name, parts]) =>
        make(
          "div",
          { id: `panel-${name}`, role: "tabpanel", "aria-labelledby": `view-${name}` },
          parts,
        ),
      ),
    );
    const choose = (at) => this.open(this.names[at]);
    this.stop = rove(this.list, this.tabs, { choose });
    if (this.names.includes(this.chosen)) this.open(this.chosen, false);
    else this.open(this.names.length > 1 ? this.names[0] : null, false);
  }

  open(name, byReader = true) {
    if (byReader) this.chosen = name;
    this.names.forEach((one, at) => {
      this.tabs[at].setAttribute("aria-selected", one === name);
      this.panels.children[at].hidden = one !== name;
      if (one === name) this.stop(at);
    });
    this.learning.watch(name === "learning");
    dispatchEvent(new Event("resize")); // pictures that were hidden could not be measured
  }
}
