// What an explanation holds, unpacked, and small ways to build its pictures. Text only ever becomes
// text nodes.

// What may differ between the pages that draw it: their language, what a reader can do besides
// looking, and when they are done with it.
const { say = filled, act = {}, signal } = options;

// A sentence with values in its places: "Step {step} of {steps}".
function filled(sentence, values = {}) {
  return sentence.replace(/{(\w+)}/g, (place, name) => values[name] ?? place);
}

// The same with elements in some places, as a list of nodes.
function phrase(sentence, elements) {
  return say(sentence)
    .split(/{(\w+)}/)
    .flatMap((part, at) => (at % 2 ? elements[part] : part ? [part] : []));
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

function shorts(text) {
  const raw = bytes(text),
    found = new Uint16Array(raw.length / 2);
  for (let at = 0; at < found.length; at++) found[at] = raw[2 * at] | (raw[2 * at + 1] << 8);
  return found;
}

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

// The head of a table: a column of names, and columns of numbers.
function columns(name, ...numbers) {
  const cells = numbers.map((one) => make("th", { scope: "col", class: "number" }, say(one)));
  return make("thead", {}, make("tr", {}, make("th", { scope: "col" }, say(name)), cells));
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

// An influence, with its sign if the method gives one.
function influenceText(value) {
  return (given.signed ? (value < 0 ? "−" : value > 0 ? "+" : "") : "") + amount(value);
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

// Whether words are written without the spaces between them; tokens may carry theirs.
const apart =
  given.prediction.includes(" ") && !given.targets.some((target) => /^\s|\s$/.test(target.text));

const EAST_ASIAN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]/u;

// The influence of every piece on a target.
const influence = (() => {
  const raw = new Float32Array(bytes(given.influence).buffer),
    wide = given.pieces.length;
  return (target) => [...raw.subarray(target * wide, (target + 1) * wide)];
})();

// The same as shares of the largest, from -1 to 1.
function shares(target) {
  const found = influence(target),
    most = Math.max(...found.map(Math.abs), 1e-30);
  return found.map((value) => value / most);
}

// Colours an element by its share: for or against the target, or by how much it counts.
function colour(element, share) {
  const drawn = Math.abs(share) >= 0.04;
  element.style.setProperty("--share", Math.abs(share).toFixed(3));
  element.classList.toggle("counts", drawn && !given.signed);
  element.classList.toggle("for", drawn && given.signed && share > 0);
  element.classList.toggle("against", drawn && given.signed && share < 0);
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

// Everything that depends on the chosen target is drawn again when another is chosen.
const chosen = { target: 0, listeners: [] };
function chooseTarget(target) {
  chosen.target = target;
  chosen.listeners.forEach((listener) => listener(target));
}
