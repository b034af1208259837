/* The list: what is shown and in which order. */

const list = document.getElementById("utterances");
const toolbar = document.getElementById("toolbar");
const controls = Object.fromEntries(
  [...toolbar.querySelectorAll("[name]")].map((control) => [control.name, control]),
);
const cards = index.utterances.map(cardOf);
const byElement = new Map(cards.map((card) => [card.element, card]));
let shown = [];

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) fill(byElement.get(target));
  },
  { rootMargin: "1200px 0px" },
);
cards.forEach((card) => near.observe(card.element));

function showMessage(message) {
  document.getElementById("message").textContent = message;
}

/** Sort key of a card, largest first, and the label in its head. */
function keyOf({ utterance, position }) {
  const { sort, voice } = controls;
  if (sort.value === "flags") return { value: utterance.flags.length, label: "" };
  if (sort.value === "seconds") return { value: utterance.seconds, label: clock(utterance.seconds) };
  if (sort.value === "id") return { value: -position, label: "" };
  const column = index.columns[sort.value];
  const value = valueOf(utterance, voice.value, sort.value);
  if (value === null) return { value: NaN, label: "" };
  const label = `${column.label} ${number(value, column.digits)} ${column.unit}`;
  return { value: badness(value, column), label };
}

function matches({ id, text, flags }) {
  const wanted = controls.search.value.trim().toLowerCase();
  const check = controls.flag.value;
  const flagged = check === "*" ? flags.length > 0 : flags.some((flag) => flag[1] === check);
  const contains = [id, text].some((words) => words.toLowerCase().includes(wanted));
  return contains && (check === "" || flagged);
}

function arrange() {
  const way = controls.order.value === "best" ? -1 : 1;
  const matching = cards.filter((card) => matches(card.utterance));
  const keyed = matching.map((card) => ({ card, key: keyOf(card) }));
  keyed.sort((a, b) => {
    const missing = isNaN(a.key.value) - isNaN(b.key.value); // those without a score come last
    return missing || way * (b.key.value - a.key.value) || a.card.position - b.card.position;
  });
  shown = keyed.map(({ card }) => card);
  if (player.card !== null && !shown.includes(player.card)) stop();
  keyed.forEach(({ card, key }, n) => {
    card.rank.textContent = String(n + 1);
    card.key.textContent = key.label;
  });
  list.replaceChildren(...shown.map((card) => card.element));
  document.getElementById("count").textContent = `${shown.length} of ${cards.length}`;
  document.getElementById("nothing").hidden = shown.length > 0;
}

for (const name of ["sort", "voice", "order", "flag", "search"]) {
  controls[name].addEventListener("input", () => {
    arrange();
    // further down there may be nothing left, or not what comes first
    if (list.getBoundingClientRect().top < 0) list.scrollIntoView();
  });
}

let width = list.clientWidth;
new ResizeObserver(() => {
  if (list.clientWidth === width) return;
  width = list.clientWidth;
  cards.filter((card) => card.filled).forEach(layOut);
}).observe(list);
arrange();
