// A picture to ask with: a file that is chosen, dropped or pasted.

import { make } from "./elements.js";
import { acceptDrops, filePicker } from "./files.js";
import { words } from "./language.js";

export function imageInput({ onask }) {
  const given = make("div", { class: "given" });
  let address = null;
  const open = (file) => {
    if (address) URL.revokeObjectURL(address);
    address = URL.createObjectURL(file);
    given.replaceChildren(make("img", { class: "picture", src: address, alt: file.name }));
    onask(file);
  };
  const box = make(
    "div",
    { class: "ask drop", role: "group", "aria-label": words.picture, tabindex: -1 },
    make("p", {}, words.givePicture),
    make(
      "div",
      { class: "row" },
      filePicker({ accept: "image/png,image/jpeg,image/gif,image/webp", label: words.openPicture, kind: "main", onfile: open }),
    ),
    given,
  );
  acceptDrops(box, open);
  box.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (file) open(file);
  });
  return { box, focus: () => box.querySelector("button").focus() };
}
