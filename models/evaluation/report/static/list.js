/* The list: what is shown and in which order, and the keyboard. */

const list = document.getElementById("utterances");
const toolbar = document.getElementById("toolbar");
const controls = Object.fromEntries(
  [...toolbar.querySelectorAll("[name]")].map((control) => [control.name, control]),
);
const cards = index.utterances.map(cardOf);
const byElement = new Map(cards.map((card) => [card.element, card]));
let shown = [];
let current = null;

const near = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      (isIntersecting ? fill : empty)(byElement.get(target));
    }
  },
  { rootMargin: "1200px 0px" },
);
cards.forEach((card) => near.observe(card.element));

function showMessage(message) {
  document.getElementById("message").textContent = message;
}

function setCurrent(card) {
  if (current === card) return;
  current?.element.classList.remove("current");
  current = card;
  current?.element.classList.add("current");
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
  if (!shown.includes(current)) setCurrent(null);
}

/** Lays out again the cards with content. */
function redraw() {
  cards.filter((card) => card.filled).forEach(layOut);
}

/** The next card in the list, or the first one that is in sight. */
function go(way) {
  if (shown.length === 0) return;
  const inSight = shown.findIndex((card) => card.element.getBoundingClientRect().bottom > 120);
  const from = current === null ? inSight - way : shown.indexOf(current);
  const next = shown[Math.min(Math.max(from + way, 0), shown.length - 1)];
  fill(next);
  if (isPlaying()) stop();
  setCurrent(next);
  next.element.focus({ preventScroll: true });
  next.element.scrollIntoView({ block: "start" });
}

/** The voice that space plays: the one that was played last, else the first system. */
function chosenTrack(card) {
  const voice = player.card?.tracks[player.k]?.voice;
  const same = card.tracks.findIndex((track) => track.voice === voice);
  if (same >= 0) return same;
  const system = card.tracks.findIndex((track) => !index.voices[track.voice].is_reference);
  return Math.max(system, 0);
}

const KEYS = {
  j: () => go(1),
  k: () => go(-1),
  "/": () => controls.search.focus(),
  " ": () => {
    if (current === null) go(1);
    if (current !== null) toggle(current, chosenTrack(current));
  },
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && typing) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
  if (event.key === " " && event.target.matches("button, summary, a")) return; // presses it
  if (event.key in KEYS) KEYS[event.key]();
  else if (/^[1-9]$/.test(event.key) && current !== null) switchTo(current, Number(event.key) - 1);
  else return;
  event.preventDefault();
});

for (const name of ["sort", "voice", "order", "flag", "search"]) {
  controls[name].addEventListener("input", () => {
    arrange();
    // further down there may be nothing left, or not what comes first
    if (list.getBoundingClientRect().top < 0) list.scrollIntoView();
  });
}
controls.zoom.addEventListener("input", () => {
  view.zoom = Number(controls.zoom.value);
  redraw();
});
for (const link of document.querySelectorAll("button[data-flag]")) {
  link.addEventListener("click", () => {
    controls.flag.value = link.dataset.flag;
    arrange();
    list.scrollIntoView();
  });
}

let width = list.clientWidth;
new ResizeObserver(() => {
  const sticky = getComputedStyle(toolbar).position === "sticky";
  const height = sticky ? toolbar.offsetHeight : 0;
  document.documentElement.style.setProperty("--toolbar", `${height}px`);
  if (list.clientWidth === width) return;
  width = list.clientWidth;
  redraw();
}).observe(list);
arrange();
