/* Results of an utterance: flags, recognised words, scores. */

/** A voice by its name and colour. */
function nameOf(voice) {
  const { name, slot } = index.voices[voice];
  return el("span", { class: `name ink-${slot}` }, el("i", { class: "dot" }), ...breakable(name));
}

/** The failure that a check finds. */
const failureOf = (check) => index.checks[check] ?? check;

/** A chip for each check that flagged the utterance. */
function chipsOf({ flags }) {
  return [...new Set(flags.map(([, check]) => check))].map((check) => {
    const notes = flags.filter((flag) => flag[1] === check).map(([, , note]) => note);
    return el("span", { class: "chip", title: notes.join("\n") }, failureOf(check));
  });
}

/** Descriptions of the flags. */
function flagsOf({ flags }) {
  if (flags.length === 0) return [];
  const lines = flags.map(([voice, check, note]) =>
    el("li", {}, nameOf(voice), ` ${failureOf(check)}: ${note}`),
  );
  return [el("ul", { class: "flags" }, ...lines)];
}

/** The output of the recogniser. */
function heardOf(heard) {
  if (heard.length === 0) return [];
  const rows = heard.flatMap(([voice, words]) => [
    el("dt", {}, nameOf(voice)),
    el("dd", {}, words || "nothing"),
  ]);
  const summary = el("summary", {}, "Heard");
  return [el("details", { class: "heard", open: !narrow.matches }, summary, el("dl", {}, ...rows))];
}

/** A row for each voice, a column for each score that any of them has. */
function scoresOf({ values }) {
  const has = (c) => values.some((row) => row !== null && row[c] !== null);
  const columns = [...index.columns.keys()].filter(has);
  if (columns.length === 0) return el("p", { class: "quiet" }, "No scores.");
  const head = columns.map((c) => {
    const { label, unit, better } = index.columns[c];
    const arrow = { lower: "↓", higher: "↑" }[better] ?? "";
    return el("th", { scope: "col" }, ...breakable(label), el("small", {}, `${unit} ${arrow}`));
  });
  const rows = values.flatMap((row, voice) => (row ? [scoreRow(row, voice, columns)] : []));
  const table = el(
    "table",
    { class: "scores" },
    el("thead", {}, el("tr", {}, el("td"), ...head)),
    el("tbody", {}, ...rows),
  );
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Scores" }, table);
}

function scoreRow(row, voice, columns) {
  const cells = columns.map((c) => {
    if (row[c] === null) return el("td", { class: "quiet" }, "–");
    return el("td", {}, number(row[c], index.columns[c].digits));
  });
  return el("tr", {}, el("th", { scope: "row" }, nameOf(voice)), ...cells);
}
