/** Speech of the voice in this folder, for the page. */

import { Voice } from "./speak.js";

let voice = null;

export async function listVoices() {
  voice = await Voice.open();
  const voices = voice.facts.speakers.map(({ name, language }) =>
    ({ id: name, languages: [language] }));
  return { sampleRate: voice.sampleRate, voices };
}

export function speak({ text, voice: speaker, speed, pitch }) {
  return voice.generate(text, { speaker, pace: speed, pitch });
}
