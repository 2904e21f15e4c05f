// What an explanation holds, unpacked.

// What may differ between the pages that draw it: their language, what a reader can do besides
// looking, and when they are done with it.
const { say = filled, act = {}, signal } = options;

given.prediction ??= given.guess; // what is explained where there is no answer

// A sentence with elements in its places, as a list of nodes.
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

// The head of a table: a column of names, and columns of numbers.
function columns(name, ...numbers) {
  const cells = numbers.map((one) => make("th", { scope: "col", class: "number" }, say(one)));
  return make("thead", {}, make("tr", {}, make("th", { scope: "col" }, say(name)), cells));
}

// An influence, with its sign if the method gives one.
function influenceText(value) {
  return (given.signed ? (value < 0 ? "−" : value > 0 ? "+" : "") : "") + amount(value);
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

// Everything that depends on the chosen target is drawn again when another is chosen.
const chosen = { target: 0, listeners: [] };
function chooseTarget(target) {
  chosen.target = target;
  chosen.listeners.forEach((listener) => listener(target));
}
