/* What the other parts share: the index of the page, elements without any HTML in strings, numbers
   for people. Texts and ids only ever become text nodes and attributes. */

const index = JSON.parse(document.getElementById("index").textContent);
const narrow = matchMedia("(max-width: 640px)");

/** An element; `on...` attributes are listeners, null and false ones are left out. */
function el(name, attributes = {}, ...children) {
  return dressed(document.createElement(name), attributes, children);
}

/** The same in SVG. */
function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  return dressed(element, attributes, children);
}

function dressed(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A name that may be broken after its signs. */
function breakable(name) {
  const parts = name.match(/[^_.\/-]+[_.\/-]*|[_.\/-]+/g) ?? [];
  return parts.flatMap((part, n) => (n === 0 ? [part] : [el("wbr"), part]));
}

function number(value, digits) {
  // a true minus sign is as wide as a digit
  return value.toFixed(digits).replace("-", "−");
}

function clock(seconds) {
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** How bad a value is: the larger the worse; NaN where there is none. */
function badness(value, column) {
  if (value === null || value === undefined) return NaN;
  if (column.better === "lower") return value;
  return column.better === "higher" ? -value : Math.abs(value);
}

/** The value of an utterance, or null. */
function valueOf(utterance, voice, column) {
  return utterance.values[voice]?.[column] ?? null;
}

/** From where on a value is among the worst tenth of its voice; Infinity where ten are not there. */
const limits = index.voices.map((_, voice) =>
  index.columns.map((column, c) => {
    const all = index.utterances.map((u) => badness(valueOf(u, voice, c), column)).filter(isFinite);
    if (all.length < 10 || !column.better) return Infinity;
    all.sort((a, b) => b - a);
    const limit = all[Math.floor(all.length / 10) - 1];
    return limit > all[all.length - 1] ? limit : Infinity; // all alike: none is bad
  }),
);
