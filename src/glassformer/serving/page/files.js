// Files that are chosen or dropped.

import { make } from "./elements.js";

// A button that opens the browser's own dialogue.
export function filePicker({ accept, label, onfile, kind = "plain" }) {
  const input = make("input", {
    type: "file",
    accept,
    hidden: true,
    onchange: () => {
      if (input.files[0]) onfile(input.files[0]);
      input.value = "";
    },
  });
  const button = make("button", { class: kind, type: "button", onclick: () => input.click() }, label);
  return [input, button];
}

export function acceptDrops(box, onfile) {
  const over = (event) => {
    if (![...event.dataTransfer.items].some((item) => item.kind === "file")) return;
    event.preventDefault();
    box.classList.toggle("dropping", event.type === "dragover");
  };
  box.addEventListener("dragover", over);
  box.addEventListener("dragleave", over);
  box.addEventListener("drop", (event) => {
    over(event);
    if (event.dataTransfer.files[0]) onfile(event.dataTransfer.files[0]);
  });
}
