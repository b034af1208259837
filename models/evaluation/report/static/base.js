/* Shared parts: the index of the page, elements without any HTML in strings, formatted numbers.
   Texts and ids only ever become text nodes and attributes. */

const index = JSON.parse(document.getElementById("index").textContent);
const narrow = matchMedia("(max-width: 640px)");

/** Makes elements; `on...` attributes are listeners, null and false ones are left out. */
const maker =
  (namespace) =>
  (name, attributes = {}, ...children) => {
    const element = document.createElementNS(`http://www.w3.org/${namespace}`, name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  };
const el = maker("1999/xhtml");
const svg = maker("2000/svg");

/** A name that may be broken after its signs. */
function breakable(name) {
  const parts = name.match(/[^_.\/-]+[_.\/-]*|[_.\/-]+/g) ?? [];
  return parts.flatMap((part, n) => (n === 0 ? [part] : [el("wbr"), part]));
}

// a true minus sign is as wide as a digit
const number = (value, digits) => value.toFixed(digits).replace("-", "−");

const clock = (seconds) =>
  seconds < 60
    ? `${seconds.toFixed(1)} s`
    : `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;

/** How bad a value is: the larger the worse; NaN where there is none. */
function badness(value, column) {
  if (value === null || value === undefined) return NaN;
  if (column.better === "lower") return value;
  return column.better === "higher" ? -value : Math.abs(value);
}

/** The value of an utterance, or null. */
const valueOf = (utterance, voice, column) => utterance.values[voice]?.[column] ?? null;
