/* Drawings over one time axis: phones, pitch, seconds. */

const LABEL_ROWS = 3;
const LABEL_ROW = 12; // pixels
const CHARACTER = 7; // width of a character of a phone name, pixels
const PITCH_HEIGHT = 120;
const PITCH_LINES = [50, 75, 100, 150, 200, 300, 400, 600, 800];

/** Boundaries over the mel, and below it the names: in as many rows as they need, three at most. */
function drawPhones(phones, scale, width, melHeight) {
  const ends = [];
  const names = [];
  let lines = "";
  for (const [name, start, end] of phones) {
    const half = (name.length * CHARACTER) / 2;
    const x = Math.min(Math.max(((start + end) / 2) * scale, half), Math.max(width - half, half));
    lines += `M${(end * scale).toFixed(1)} 0V${melHeight}`;
    let row = 0;
    while (row < ends.length && ends[row] > x - half) row++;
    if (row === LABEL_ROWS) continue; // no room; there is some in a larger scale
    ends[row] = x + half + 2;
    names.push(svg("text", { x: x.toFixed(1), y: melHeight + (row + 1) * LABEL_ROW - 1 }, name));
  }
  const height = melHeight + ends.length * LABEL_ROW + 2;
  // fainter where they are dense, or they would hide the mel
  const boundaries = svg("path", { d: lines, "stroke-opacity": scale < 120 ? 0.26 : 0.42 });
  return svg("svg", { class: "phones", width, height, "aria-hidden": "true" }, boundaries, ...names);
}

/** Curves of several voices, [{voice, f0}], in Hz by frame; 0 is unvoiced. */
function drawPitch(curves, frame, scale, width) {
  const range = pitchRange(curves);
  if (range === null) return null;
  const [low, high] = range.map(Math.log);
  const y = (hz) => PITCH_HEIGHT * (1 - (Math.log(hz) - low) / (high - low));
  const height = PITCH_HEIGHT;
  const picture = svg("svg", { class: "curves", width, height, "aria-hidden": "true" });
  const shown = PITCH_LINES.filter((hz) => hz > range[0] * 1.04 && hz < range[1] / 1.04);
  for (const hz of shown) {
    picture.append(svg("path", { class: "grid", d: `M0 ${y(hz).toFixed(1)}H${width}` }));
  }
  for (const { voice, f0 } of curves) {
    const { slot } = index.voices[voice];
    picture.append(svg("path", { class: `curve ink-${slot}`, d: curveOf(f0, frame * scale, y) }));
  }
  return { picture, lines: shown.map((hz) => ({ hz, y: y(hz) })) };
}

function curveOf(f0, step, y) {
  let path = "";
  let drawing = false;
  f0.forEach((hz, frame) => {
    const x = (frame * step).toFixed(1);
    if (hz > 0 && drawing) path += `L${x} ${y(hz).toFixed(1)}`;
    // a frame by itself becomes a dot: the ends of lines are round
    else if (hz > 0) path += `M${x} ${y(hz).toFixed(1)}h0`;
    drawing = hz > 0;
  });
  return path;
}

/** From the lowest to the highest pitch, without those far off, which are errors of an octave. */
function pitchRange(curves) {
  const voiced = curves.flatMap(({ f0 }) => f0.filter((hz) => hz > 0)).sort((a, b) => a - b);
  if (voiced.length === 0) return null;
  const at = (share) => voiced[Math.round(share * (voiced.length - 1))];
  return [Math.max(at(0), at(0.05) / 1.35) / 1.05, Math.min(at(1), at(0.95) * 1.35) * 1.05];
}

function drawSeconds(scale, width) {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10].find((seconds) => seconds * scale >= 56) ?? 20;
  const axis = svg("svg", { class: "seconds", width, height: 18, "aria-hidden": "true" });
  for (let n = 0; n * step * scale < width - 12; n++) {
    const x = n * step * scale;
    axis.append(svg("path", { d: `M${x.toFixed(1)} 0v4` }));
    const name = `${Number((n * step).toFixed(1))}${n === 0 ? " s" : ""}`;
    axis.append(svg("text", { x: x + 3, y: 13 }, name));
  }
  return axis;
}
