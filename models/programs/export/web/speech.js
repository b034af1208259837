/** Speech of the voice in this folder, for the page. */

import { Voice } from "./speak.js";

let voice = null;

export async function listVoices() {
  voice = await Voice.open();
  const { speaker, speakers } = voice.facts;
  const voices = speakers.map(({ name, language }) => ({ id: name, languages: [language] }))
    .sort((one, other) => (other.id === speaker) - (one.id === speaker));  // the default first
  return { sampleRate: voice.sampleRate, voices };
}

export function speak({ text, voice: speaker, speed, pitch }) {
  return voice.generate(text, { speaker, pace: speed, pitch });
}
