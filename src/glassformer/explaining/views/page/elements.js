// Small ways to build a page, and to write numbers and tokens. Text only ever becomes text nodes.

// An element with attributes, listeners ("onclick") and children; strings become text.
function make(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}

function section(title, ...children) {
  return make("section", {}, make("h2", {}, title), ...children);
}

// Numbers are rounded once, halves up, as in `views/wording.py`.
function rounded(value, digits) {
  const unit = 10 ** digits;
  return (Math.floor(value * unit + 0.5) / unit).toFixed(digits);
}

function percent(share) {
  const value = 100 * share;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99.9 && value < 100) return "> 99.9 %";
  return `${rounded(value, value < 9.95 || (value > 99 && value < 100) ? 1 : 0)} %`;
}

function amount(value) {
  const size = Math.abs(value);
  if (size >= 0.001) return rounded(size, size >= 0.1 ? 2 : 3);
  return size ? size.toExponential(0) : "0";
}

// A token that can be seen: spaces and line ends have signs of their own.
function visible(token) {
  if (token === "") return "∅";
  if (token.trim() === "") return token.replace(/\n/g, "↵").replace(/\s/g, "␣");
  return token.trim();
}

// The direction of a text: that of its first letter, special tokens such as <s> aside.
function direction(text) {
  const letter = text.replace(/<[^>]*>|\[[^\]]*\]/g, "").match(/\p{L}/u)?.[0] ?? "";
  return /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(
    letter,
  )
    ? "rtl"
    : "ltr";
}

// A sentence with values in its places: "Step {step} of {steps}".
function filled(sentence, values = {}) {
  return sentence.replace(/{(\w+)}/g, (place, name) => values[name] ?? place);
}

function bar(share) {
  const inner = make("i");
  inner.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, inner);
}

// One tab stop for many elements; arrow keys, Home and End move between them.
function rove(container, items, { columns = 0, choose = () => {} } = {}) {
  const focus = (at) => {
    items.forEach((item, number) => (item.tabIndex = number === at ? 0 : -1));
    items[at].focus();
    choose(at);
  };
  items.forEach((item, at) => (item.tabIndex = at ? -1 : 0));
  container.addEventListener("keydown", (event) => {
    const at = items.indexOf(document.activeElement);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const forward = getComputedStyle(container).direction === "rtl" ? -1 : 1;
    const step = {
      ArrowRight: forward,
      ArrowLeft: -forward,
      ArrowDown: columns || 1,
      ArrowUp: -(columns || 1),
      Home: -at,
      End: items.length - 1 - at,
    }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const to = at + step;
    if (to >= 0 && to < items.length) focus(to);
  });
  return (at) => items.forEach((item, number) => (item.tabIndex = number === at ? 0 : -1));
}
