/** Speech of the server, for the page. */

const form = document.getElementById("form");
const token = document.createElement("label");
token.hidden = true;
token.innerHTML = 'Token <input name="token" type="password" autocomplete="off">';
token.id = "token";
form.voice.closest("div").append(token);

async function asked(path, options) {
  const headers = {
    "Content-Type": "application/json",
    ...(form.token.value && { Authorization: `Bearer ${form.token.value}` }),
  };
  const answer = await fetch(path, { headers, ...options });
  token.hidden &&= answer.status !== 401;
  if (!answer.ok) throw new Error((await answer.json()).error.message);
  return answer;
}

function* eventsIn(lines) {
  for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
}

async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part; !(part = await reader.read()).done;) {
    const lines = (rest + part.value).split("\n");
    rest = lines.pop();
    yield* eventsIn(lines);
  }
}

export async function listVoices() {
  const { data } = await (await asked("/v1/audio/voices")).json();
  const voices = data.filter(({ speaker }) => speaker !== null);  // those that need no speaker
  return { sampleRate: 24000, voices };  // the rate of "pcm"
}

export async function* speak({ text, voice, speed, pitch }, signal) {
  const body = JSON.stringify({
    model: "arion", input: text, voice, speed, ...(pitch !== 1 && { pitch }),
    response_format: "pcm", stream_format: "sse", timestamps: true, subtitles: "srt",
  });
  const answer = await asked("/v1/audio/speech", { method: "POST", body, signal });
  let subtitles = null;  // of the last event
  for await (const { audio = "", words = [], ...event } of events(answer)) {
    subtitles = event.subtitles;
    const bytes = Uint8Array.from(atob(audio), (letter) => letter.charCodeAt(0));
    const wav = Float32Array.from(new Int16Array(bytes.buffer), (step) => step / 32768);
    yield { wav, words, subtitles };
  }
  if (subtitles == null) throw new Error("the connection ended early");
}
