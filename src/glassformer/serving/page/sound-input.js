// A recording to ask with: a file that is chosen, dropped or pasted, or the microphone.

import { make } from "./elements.js";
import { acceptDrops, filePicker } from "./files.js";
import { words } from "./language.js";
import { canRecord, record } from "./recorder.js";
import { playable } from "./wav.js";

const LONGEST = 120; // seconds of a recording made here

export function soundInput({ onask }) {
  const given = make("div", { class: "given" }),
    level = make("meter", { min: 0, max: 1, value: 0, "aria-hidden": "true" }),
    clock = make("span", { class: "clock" }),
    problem = make("p", { class: "quiet", role: "status" });
  let address = null,
    recording = null;
  const show = async (file, name) => {
    onask(file);
    const copy = await playable(file);
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(copy);
    given.replaceChildren(
      make("audio", { controls: true, src: address, "aria-label": name }),
      make("span", { class: "quiet" }, make("bdi", {}, name)),
    );
    problem.textContent = "";
  };
  const tick = (seconds, loudness) => {
    clock.textContent = words.seconds(seconds.toFixed(1));
    level.value = Math.sqrt(loudness);
    if (seconds >= LONGEST) toggle();
  };
  async function toggle() {
    if (recording) {
      const ended = recording;
      recording = null;
      state(false);
      return show(await ended.stop(), words.ownRecording);
    }
    try {
      recording = await record(tick);
      state(true);
    } catch {
      problem.textContent = words.noMicrophone;
    }
  }
  function state(on) {
    button.replaceChildren(make("i", { "aria-hidden": "true" }), on ? words.stop : words.record);
    button.classList.toggle("recording", on);
    live.hidden = !on;
  }
  const button = make("button", { class: "main record", type: "button", onclick: toggle });
  const live = make("span", { class: "live" }, level, clock);
  const open = (file) => show(file, file.name);
  const box = make(
    "div",
    { class: "ask drop", role: "group", "aria-label": words.recording, tabindex: -1 },
    make("p", {}, canRecord ? words.giveSound : words.giveSoundFile),
    make(
      "div",
      { class: "row" },
      canRecord ? button : null,
      filePicker({
        accept: "audio/*,.wav,.flac,.ogg,.mp3",
        label: words.openSound,
        kind: canRecord ? "plain" : "main",
        onfile: open,
      }),
      live,
    ),
    problem,
    given,
  );
  state(false);
  acceptDrops(box, open);
  addEventListener("hashchange", () => {
    recording?.cancel();
    recording = null;
    state(false);
  });
  box.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("audio/"));
    if (file) open(file);
  });
  return { box, focus: () => box.querySelector("button").focus() };
}
