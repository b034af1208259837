/* An utterance: its head is always there; players, pictures and scores come when it is near the
   window and go when it is far, so that a thousand of them are no burden. */

const MEL_HEIGHT = 96;
const SLOWEST = 70; // pixels a second at scale 1: phones can be told apart
const FASTEST = 320;
const view = { zoom: 1, warped: false };

/** A card with its head; `position` finds its data. */
function cardOf(utterance, position) {
  const card = { utterance, position, filled: false, tracks: [], scale: SLOWEST };
  card.rank = el("span", { class: "rank" });
  card.key = el("span", { class: "key" });
  card.body = el("div", { class: "body" });
  const title = el("h3", { id: `title-${position}` }, utterance.id);
  const text = utterance.text ? el("p", { class: "text" }, utterance.text) : el("p", { class: "text none" }, "No text");
  card.element = el(
    "article",
    { class: "card", tabindex: "-1", "aria-labelledby": `title-${position}`, onpointerdown: () => setCurrent(card) },
    el("header", {}, card.rank, title, card.key, ...chipsOf(utterance)),
    text,
    card.body,
  );
  return card;
}

/** A chip for each check that found something. */
function chipsOf(utterance) {
  return [...new Set(utterance.flags.map(([, check]) => check))].map((check) => {
    const notes = utterance.flags.filter((flag) => flag[1] === check).map(([, , note]) => note);
    return el("span", { class: "chip", title: notes.join("\n") }, failureOf(check));
  });
}

function fill(card) {
  if (card.filled) return;
  const data = JSON.parse(document.getElementById(`data-${card.position}`).textContent);
  card.data = data;
  card.filled = true;
  card.tracks = data.tracks.map((track, k) => trackOf(card, track, k));
  card.stage = el("div", { class: "stage" });
  card.body.replaceChildren(...flagsOf(card), ...heardOf(data), card.stage, scoresOf(card), ...card.tracks.map(({ audio }) => audio));
  layOut(card);
  card.body.style.minHeight = "";
}

/** Makes room in memory; the height stays, so that nothing jumps. */
function empty(card) {
  if (!card.filled || player.card === card) return;
  card.body.style.minHeight = `${card.body.offsetHeight}px`;
  card.body.replaceChildren();
  card.filled = false;
  card.tracks = [];
}

function trackOf(card, track, k) {
  const { name, slot } = index.voices[track.voice];
  const audio = el("audio", { src: track.audio, preload: "none" });
  const button = el(
    "button",
    { class: "play", type: "button", "aria-label": `Play ${name}`, title: `Key ${k + 1}`, onclick: () => toggle(card, k) },
    svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { class: "go", d: "M6 3.5v13l11-6.5z" }), svg("path", { class: "halt", d: "M5 4h3.5v12H5zM11.5 4H15v12h-3.5z" })),
  );
  const label = el(
    "div",
    { class: "label" },
    button,
    el("span", { class: "who" }, el("span", { class: `name ink-${slot}` }, el("i", { class: "dot" }), name), el("span", { class: "length" }, clock(track.seconds))),
  );
  return { ...track, name, audio, button, label };
}

/** Everything that depends on the width; no sound is among it, for one that is moved falls silent. */
function layOut(card) {
  const { tracks, stage } = card;
  card.labelWidth = narrow.matches ? 0 : 168;
  const longest = Math.max(0.1, ...tracks.map((track) => track.picture_s));
  const fitting = (stage.clientWidth - card.labelWidth - 2) / longest;
  card.scale = Math.min(Math.max(fitting, SLOWEST), FASTEST) * view.zoom;
  const width = Math.floor(longest * card.scale);
  stage.replaceChildren(...tracks.map((track, k) => rowOf(card, track, k)), ...pitchRows(card, width), el("div", { class: "row" }, el("div", { class: "label" }), drawSeconds(card.scale, width)));
  tracks.forEach((_, k) => showState(card, k));
}

function rowOf(card, track, k) {
  const width = Math.max(track.picture_s * card.scale, 1).toFixed(1);
  track.cursor = el("div", { class: "cursor" });
  track.view = el(
    "div",
    {
      class: "view",
      role: "slider",
      tabindex: "0",
      "aria-label": `Place in ${track.name}`,
      "aria-valuemin": "0",
      "aria-valuemax": track.seconds.toFixed(1),
      "aria-valuenow": "0",
      onclick: (event) => seek(card, k, (event.clientX - track.view.getBoundingClientRect().left) / card.scale),
      onkeydown: (event) => step(event, card, k),
    },
    el("img", { src: track.picture, width, height: MEL_HEIGHT, alt: "", draggable: "false" }),
    drawPhones(track.phones, card.scale, Number(width), MEL_HEIGHT),
    track.cursor,
  );
  track.row = el("div", { class: "row track" }, track.label, track.view);
  return track.row;
}

function step(event, card, k) {
  const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!way) return;
  event.preventDefault();
  event.stopPropagation();
  seek(card, k, card.tracks[k].audio.currentTime + way);
}

function pitchRows(card, width) {
  const warped = view.warped && card.tracks.some((track) => track.warped);
  // what is judged lies on top, and the recording on its copies
  const below = (track) => (index.voices[track.voice].is_reference ? -1 : 1) * (track.voice + 1);
  const sorted = [...card.tracks].sort((a, b) => below(a) - below(b));
  const curves = sorted.map((track) => ({ voice: track.voice, f0: (warped && track.warped) || track.f0 }));
  const drawn = drawPitch(curves, card.data.frame_s, card.scale, width);
  card.pitchCursor = el("div", { class: "cursor", hidden: true });
  if (drawn === null) return [];
  const lines = drawn.lines.map(({ hz, y }) => el("span", { class: "hz" }, String(hz)));
  lines.forEach((line, n) => (line.style.top = `${drawn.lines[n].y}px`));
  const time = warped ? "recorded time" : "own time";
  const label = el("div", { class: "label" }, el("span", { class: "who" }, "Pitch", el("span", { class: "length" }, time)), ...lines);
  return [el("div", { class: "row pitch" }, label, el("div", { class: "view" }, drawn.picture, card.pitchCursor))];
}

/** What is wrong, in words. */
function flagsOf(card) {
  const { flags } = card.utterance;
  if (flags.length === 0) return [];
  const lines = flags.map(([voice, check, note]) => el("li", {}, el("span", { class: `name ink-${index.voices[voice].slot}` }, el("i", { class: "dot" }), index.voices[voice].name), ` ${failureOf(check)}: ${note}`));
  return [el("ul", { class: "flags" }, ...lines)];
}

/** What a recogniser heard; what it should have heard and did not is crossed out. */
function heardOf(data) {
  if (data.heard.length === 0) return [];
  const rows = data.heard.map(({ voice, words }) => {
    const wrong = words.some(([, kind]) => kind);
    const marked = words.flatMap(([word, kind]) => [kind ? el({ extra: "ins", missing: "del" }[kind], {}, word) : word, " "]);
    const said = wrong || words.length === 0 ? marked : ["as written"];
    return [el("dt", {}, el("span", { class: `name ink-${index.voices[voice].slot}` }, el("i", { class: "dot" }), index.voices[voice].name)), el("dd", { class: wrong ? null : "same" }, ...(said.length ? said : ["nothing"]))];
  });
  return [el("details", { class: "heard", open: true }, el("summary", {}, "Heard"), el("dl", {}, ...rows.flat()))];
}

/** A row for each voice, a column for each score. */
function scoresOf(card) {
  const { values } = card.utterance;
  const columns = index.columns.map((_, c) => c).filter((c) => values.some((row) => row && row[c] !== null));
  if (columns.length === 0) return el("p", { class: "quiet" }, "No scores.");
  const head = columns.map((c) => el("th", { scope: "col" }, index.columns[c].label, el("small", {}, `${index.columns[c].unit} ${{ lower: "↓", higher: "↑" }[index.columns[c].better] ?? ""}`)));
  const rows = values.flatMap((row, voice) => (row ? [scoreRow(row, voice, columns)] : []));
  return el("div", { class: "scroll" }, el("table", { class: "scores" }, el("thead", {}, el("tr", {}, el("td"), ...head)), el("tbody", {}, ...rows)));
}

function scoreRow(row, voice, columns) {
  const { name, slot } = index.voices[voice];
  const cells = columns.map((c) => {
    const column = index.columns[c];
    if (row[c] === null) return el("td", { class: "quiet" }, "–");
    const bad = badness(row[c], column) >= limits[voice][c];
    return el("td", { class: bad ? "bad" : null, title: bad ? "among the worst tenth of this voice" : null }, number(row[c], column.digits));
  });
  return el("tr", {}, el("th", { scope: "row" }, el("span", { class: `name ink-${slot}` }, el("i", { class: "dot" }), name)), ...cells);
}
