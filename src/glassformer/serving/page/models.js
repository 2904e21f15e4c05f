// The list of models, by job; runs in training say how far they are.

import { make } from "./elements.js";
import { words } from "./language.js";

export function addressOf(model) {
  return `#/${encodeURIComponent(model.id)}`;
}

export function modelList(models, chosen) {
  const jobs = [...new Set(models.map((model) => model.job))];
  return make(
    "div",
    { class: "jobs" },
    jobs.map((job) =>
      make(
        "section",
        {},
        make("h2", {}, words.jobs[job]?.name ?? job),
        make(
          "ul",
          {},
          models.filter((model) => model.job === job).map((model) => item(model, model === chosen)),
        ),
      ),
    ),
  );
}

function item(model, chosen) {
  return make(
    "li",
    {},
    make(
      "a",
      { href: addressOf(model), "aria-current": chosen ? "page" : null },
      make("bdi", {}, model.id),
      model.training ? make("span", { class: `state ${model.state}` }, words.states[model.state]) : null,
    ),
  );
}
