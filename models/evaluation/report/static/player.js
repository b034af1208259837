/* Playing: one sound at a time; its cursor moves over its mel and over the pitch. */

const player = { card: null, k: 0, audio: null };

/** Plays a track of a card from a time on; null: from where it was, or from its start. */
function play(card, k, seconds = null) {
  const { audio, name } = card.tracks[k];
  showMessage("");
  if (player.audio !== null && player.audio !== audio) stop();
  player.card = card;
  player.k = k;
  player.audio = audio;
  if (seconds !== null) audio.currentTime = seconds;
  else if (audio.ended) audio.currentTime = 0;
  for (const event of ["play", "pause", "ended", "error"]) {
    audio[`on${event}`] = () => showState(card, k);
  }
  audio.play().catch((error) => {
    if (error.name === "AbortError") return; // a pause before the sound began is no fault
    showMessage(`${name} of ${card.utterance.id} does not play: ${error.message}`);
  });
  requestAnimationFrame(follow);
}

/** Stops and hides the cursor. */
function stop() {
  if (player.audio === null) return;
  const { card, k, audio } = player;
  player.audio = null;
  audio.pause();
  showState(card, k);
}

const isPlaying = () => player.audio !== null && !player.audio.paused && !player.audio.ended;

function toggle(card, k) {
  if (isPlaying() && player.card === card && player.k === k) player.audio.pause();
  else play(card, k);
}

/** Moves the place in a track; plays on where it was playing. */
function seek(card, k, seconds) {
  play(card, k, Math.min(Math.max(seconds, 0), card.tracks[k].seconds - 0.01));
}

function follow() {
  if (player.audio === null) return;
  showPlace();
  if (isPlaying()) requestAnimationFrame(follow);
}

function showPlace() {
  const { card, k, audio } = player;
  if (!card.filled) return;
  const x = audio.currentTime * card.scale;
  for (const cursor of [card.tracks[k].cursor, card.pitchCursor]) {
    cursor.style.transform = `translateX(${x.toFixed(1)}px)`;
  }
  keepInSight(card, x);
}

/** Scrolls a long utterance along with its cursor. */
function keepInSight(card, x) {
  const stage = card.stage;
  const room = stage.clientWidth - card.labelWidth;
  if (!isPlaying() || stage.scrollWidth <= stage.clientWidth) return;
  if (x < stage.scrollLeft || x > stage.scrollLeft + room - 20) stage.scrollLeft = x - 20;
}

function showState(card, k) {
  const playing = isPlaying() && player.card === card && player.k === k;
  const chosen = player.audio !== null && player.card === card && player.k === k;
  const track = card.tracks[k];
  if (!track?.button) return;
  track.button.classList.toggle("playing", playing);
  track.button.setAttribute("aria-label", `${playing ? "Pause" : "Play"} ${track.name}`);
  track.row.classList.toggle("chosen", chosen);
  card.pitchCursor.hidden = !chosen;
  if (chosen) showPlace();
}
