/* An utterance: its head is always there; players, pictures and scores come when it is near the
   window. */

const MEL_HEIGHT = 96; // pixels, as in the style sheet
const LABEL_WIDTH = 192;
const SLOWEST = 70; // pixels a second: phones can be told apart
const FASTEST = 320;

/** A card with its head; `position` finds its data. */
function cardOf(utterance, position) {
  const card = { utterance, position, filled: false, tracks: [], scale: SLOWEST };
  card.rank = el("span", { class: "rank" });
  card.key = el("span", { class: "key" });
  card.body = el("div", { class: "body" });
  const title = el("h3", { id: `title-${position}` }, utterance.id);
  const { text } = utterance;
  card.element = el(
    "article",
    { class: "card", "aria-labelledby": title.id },
    el("header", {}, card.rank, title, card.key, ...chipsOf(utterance)),
    el("p", { class: text ? "text" : "text none" }, text || "No text"),
    card.body,
  );
  return card;
}

function fill(card) {
  if (card.filled) return;
  card.data = JSON.parse(document.getElementById(`data-${card.position}`).textContent);
  card.filled = true;
  card.tracks = card.data.tracks.map((track, k) => trackOf(card, track, k));
  card.stage = el("div", { class: "stage" });
  card.body.replaceChildren(
    ...flagsOf(card.utterance),
    ...heardOf(card.data.heard),
    card.stage,
    scoresOf(card.utterance),
    ...card.tracks.map(({ audio }) => audio),
  );
  layOut(card);
  card.body.style.minHeight = "0"; // that of the style sheet is for cards without content
}

/** A sound with what plays it; its picture comes when it is laid out. */
function trackOf(card, track, k) {
  const { name } = index.voices[track.voice];
  const audio = el("audio", { src: track.audio, preload: "none" });
  const button = el("button", {
    class: "play",
    type: "button",
    "aria-label": `Play ${name}`,
    onclick: () => toggle(card, k),
  });
  const length = el("span", { class: "length" }, clock(track.seconds));
  const who = el("span", { class: "who" }, nameOf(track.voice), length);
  return { ...track, name, audio, button, label: el("div", { class: "label" }, button, who) };
}

/** Everything that depends on the width; no sound is in it, for one that is moved falls silent. */
function layOut(card) {
  const { tracks, stage } = card;
  card.labelWidth = narrow.matches ? 0 : LABEL_WIDTH;
  const longest = Math.max(0.1, ...tracks.map((track) => track.picture_s));
  const fitting = (stage.clientWidth - card.labelWidth - 2) / longest;
  card.scale = Math.min(Math.max(fitting, SLOWEST), FASTEST);
  const width = Math.floor(longest * card.scale);
  stage.replaceChildren(
    ...tracks.map((track, k) => rowOf(card, track, k)),
    ...pitchRows(card, width),
    el("div", { class: "row" }, el("div", { class: "label" }), drawSeconds(card.scale, width)),
  );
  tracks.forEach((_, k) => showState(card, k));
}

function rowOf(card, track, k) {
  const width = Math.max(track.picture_s * card.scale, 1);
  track.cursor = el("div", { class: "cursor" });
  const place = (event) => event.clientX - track.view.getBoundingClientRect().left;
  track.view = el(
    "div",
    { class: "view", onclick: (event) => seek(card, k, place(event) / card.scale) },
    el("img", { src: track.picture, width: width.toFixed(1), height: MEL_HEIGHT, alt: "" }),
    drawPhones(track.phones, card.scale, width, MEL_HEIGHT),
    track.cursor,
  );
  track.row = el("div", { class: "row track" }, track.label, track.view);
  return track.row;
}

/** The curves of all voices: systems on top, then the recording, then its copies. */
function pitchRows(card, width) {
  const height = ({ voice }) => (index.voices[voice].is_reference ? -1 : 1) * (voice + 1);
  const curves = [...card.tracks].sort((a, b) => height(a) - height(b));
  const drawn = drawPitch(curves, card.data.frame_s, card.scale, width);
  card.pitchCursor = el("div", { class: "cursor", hidden: true });
  if (drawn === null) return []; // nothing is voiced
  const lines = drawn.lines.map(({ hz, y }) => {
    const line = el("span", { class: "hz" }, String(hz));
    line.style.top = `${y}px`;
    return line;
  });
  const label = el("div", { class: "label" }, el("span", { class: "who" }, "Pitch, Hz"));
  label.append(...lines);
  const curvesView = el("div", { class: "view" }, drawn.picture, card.pitchCursor);
  return [el("div", { class: "row pitch" }, label, curvesView)];
}
