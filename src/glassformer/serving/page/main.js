// The page: a list of models beside the desk of the one that is chosen.

import { ask } from "./api.js";
import { Attempt } from "./attempt.js";
import { desk, heading } from "./desk.js";
import { make } from "./elements.js";
import { language, words } from "./language.js";
import { learningView } from "./learning.js";
import { addressOf, modelList } from "./models.js";

const AGAIN = 3000; // milliseconds until the list is read again while a run is in training
const main = document.getElementById("main"),
  nav = document.getElementById("models"),
  desks = new Map(), // by model: what was typed and shown stays while another one is open
  attempt = new Attempt();
let models = [];

document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
const skip = document.getElementById("skip");
skip.textContent = words.skip;
skip.addEventListener("click", (event) => {
  event.preventDefault(); // the address names the model
  main.focus();
});
nav.setAttribute("aria-label", words.models);

function deskOf(model) {
  const known = desks.get(model.id);
  if (known?.training === Boolean(model.training)) return known;
  known?.leave?.();
  const made = model.training ? trainingDesk(model) : desk(model);
  desks.set(model.id, { ...made, training: Boolean(model.training) });
  return desks.get(model.id);
}

function trainingDesk(model) {
  const view = learningView(model);
  view.watch(true);
  const box = make("article", { class: "desk" }, heading(model), view.box);
  return { box, focus: () => {}, leave: () => view.watch(false) };
}

// The list is drawn again only if it changed: a reader may be on it.
function list(chosen) {
  const state = JSON.stringify([models, chosen?.id]);
  if (nav.dataset.state === state) return;
  nav.dataset.state = state;
  const inside = nav.contains(document.activeElement);
  nav.replaceChildren(modelList(models, chosen));
  const link = nav.querySelector("[aria-current]");
  if (inside) link?.focus();
  if (link) nav.scrollLeft = link.offsetLeft - nav.clientWidth / 2 + link.offsetWidth / 2;
}

function show(focus = true) {
  const model = models.find((one) => location.hash === addressOf(one)) ?? models[0];
  list(model);
  document.title = model ? `${model.id} · Glassformer` : "Glassformer";
  if (!model) return main.replaceChildren(make("p", {}, words.noModels));
  const chosen = deskOf(model);
  if (main.firstElementChild === chosen.box) return;
  main.replaceChildren(chosen.box);
  if (focus) chosen.focus();
}

async function read(signal) {
  const [served, training] = await Promise.all(
    ["/v1/models", "/v1/training"].map((path) => ask(path, undefined, signal)),
  );
  models = [...served.data, ...training.data.map((one) => ({ ...one, training: true }))];
  if (training.data.length) setTimeout(follow, AGAIN);
}

// Reads the list again; if the server is gone for a moment, it is tried again later.
async function follow() {
  if (document.hidden) return void setTimeout(follow, AGAIN);
  try {
    await read();
    show(false);
  } catch {
    setTimeout(follow, AGAIN);
  }
}

addEventListener("hashchange", () => show());
main.replaceChildren(attempt.box);
attempt.run(async (signal) => {
  await read(signal);
  show(matchMedia("(hover: hover)").matches); // on a phone, a keyboard would cover the page
});
