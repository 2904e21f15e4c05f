// A text to ask with: typed, pasted, or dropped as a file. Enter asks, Shift+Enter starts a line.

import { make } from "./elements.js";
import { words } from "./language.js";
import { acceptDrops, filePicker } from "./files.js";

const LONGEST = 1 << 19; // bytes of a file of text

export function textInput({ label, hint, gap, onask }) {
  const field = make("textarea", {
    rows: 2,
    id: "text",
    placeholder: hint,
    dir: "auto",
    spellcheck: "false",
    enterkeyhint: "go",
    oninput: grow,
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    },
  });
  function grow() {
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.4)}px`;
  }
  const set = (text) => {
    field.value = text;
    grow();
  };
  const read = async (file) => {
    set(await file.slice(0, LONGEST).text());
    field.focus();
  };
  const insertGap = () => {
    field.setRangeText(gap, field.selectionStart, field.selectionEnd, "end");
    field.focus();
  };
  const form = make(
    "form",
    {
      class: "ask",
      onsubmit: (event) => {
        event.preventDefault();
        if (field.value.trim()) onask(field.value);
      },
    },
    make("label", { for: "text" }, label),
    field,
    make(
      "div",
      { class: "row" },
      make("button", { class: "main" }, words.ask),
      gap
        ? make("button", { class: "plain", type: "button", onclick: insertGap }, words.insertGap)
        : null,
      filePicker({ accept: "text/*,.txt,.md,.csv", label: words.openText, onfile: read }),
      make("span", { class: "quiet hint" }, words.enterAsks),
    ),
  );
  acceptDrops(form, read);
  return { box: form, set, value: () => field.value, focus: () => field.focus() };
}
