/**
 * Speaks texts with the voice in this folder; pages elsewhere on the same server can import it:
 *
 *     import { Voice } from "./voice/speak.js";
 *
 *     const voice = await Voice.open();
 *     const wav = await voice.speak("Any text.", { pace: 1.1 });    // at voice.sampleRate
 *     for await (const { wav, words } of voice.generate("A long text.")) ...   // by clauses
 */

const FADE_S = 0.005;  // at both ends of a clause: an edge that is not at zero would click
const PEAK = 0.99;     // louder speech is scaled down to this

export class Voice {
  #worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  #asked = new Map();  // what waits for an answer of the worker, by number
  #number = 0;

  /** Loads the voice; `facts` is what voice.json holds. */
  static async open() {
    const answer = await fetch(new URL("voice.json", import.meta.url));
    const voice = new Voice(await answer.json());
    await voice.#ask("open");
    return voice;
  }

  constructor(facts) {
    this.facts = facts;
    this.sampleRate = facts.sample_rate;
    this.#worker.onmessage = ({ data: { number, answer, error } }) => {
      const [resolve, reject] = this.#asked.get(number);
      this.#asked.delete(number);
      if (error) reject(new Error(error)); else resolve(answer);
    };
    this.#worker.onerror = ({ message }) => {
      for (const [, reject] of this.#asked.values())
        reject(new Error(message ?? "a file of the voice is missing, or the browser is too old"));
    };
  }

  /** Speaks a text of any length; settings as of `generate`. Resolves to (S,) in [-1, 1]. */
  async speak(text, settings) {
    const pieces = [];
    for await (const { wav } of this.generate(text, settings)) pieces.push(wav);
    const speech = new Float32Array(pieces.reduce((n, wav) => n + wav.length, 0));
    let start = 0;
    for (const wav of pieces) {
      speech.set(wav, start);
      start += wav.length;
    }
    const peak = speech.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return peak > 1 ? speech.map((value) => value * PEAK / peak) : speech;
  }

  /**
   * Speaks a text clause by clause.
   *
   * Yields the sound `wav` (n,) of each clause, and of the silence between sentences, with the
   * `words` in it: {word, start, end} in seconds from the start of the speech. Factors: `pace` on
   * the speed, `pitch` on F0, `energy` on the energy of the mel. `speaker`: name; null: the default.
   * Of a flow: `temperature` of its noise, from 0 to 2; null: the voice's own; `seed` of the noise.
   */
  async *generate(
    text,
    { speaker = null, pace = 1, pitch = 1, energy = 1, temperature = null, seed = 0 } = {},
  ) {
    const index = this.#speaker(speaker);
    const factors = this.#factors({ pace, pitch, energy });
    const flow = this.#flow(temperature, seed);
    const { hop_length: hop, sentence_pause_s: pause, speakers } = this.facts;
    let start = 0;  // of the next piece, in samples
    for (const [i, sentence] of (await this.read(text, speakers[index].language)).entries()) {
      if (i > 0) {
        const wav = new Float32Array(hop * Math.round(pause / pace * this.sampleRate / hop));
        yield { wav, words: [] };
        start += wav.length;
      }
      for (const { phone_ids, words } of sentence) {
        const { wav, durations } = await this.#ask("speak", phone_ids, index, factors, flow);
        const edges = [start];  // of the phones
        for (const frames of durations) edges.push(edges.at(-1) + frames * hop);
        yield {
          wav: this.#faded(wav),
          words: words.map(([word, first, end]) =>
            ({ word, start: edges[first] / this.sampleRate, end: edges[end] / this.sampleRate })),
        };
        start += wav.length;
      }
    }
  }

  /** The clauses of each sentence: {text, phones, phone_ids, words}, of a word [text, start, end]. */
  read(text, language) {
    return this.#ask("read", text, language);
  }

  #ask(name, ...given) {
    const number = this.#number++;
    this.#worker.postMessage({ number, name, given });
    return new Promise((...settle) => this.#asked.set(number, settle));
  }

  #speaker(name) {
    const names = this.facts.speakers.map((speaker) => speaker.name);
    name ??= this.facts.speaker;
    if (!names.includes(name))
      throw new Error(`speaker ${name}: expected one of ${names.join(", ")}`);
    return names.indexOf(name);
  }

  #factors(asked) {
    const known = this.facts.controls;
    for (const [name, value] of Object.entries(asked)) {
      if (!(0.1 <= value && value <= 10))
        throw new Error(`the factor ${value} on the ${name} is not from 0.1 to 10`);
      if (value !== 1 && !known.includes(name === "pace" ? "duration" : name))
        throw new Error(`this voice has no control of ${name}`);
    }
    const factors = { ...asked, duration: 1 / asked.pace };
    return Object.fromEntries(known.map((name) => [name, factors[name]]));
  }

  #flow(temperature, seed) {
    const own = this.facts.temperature;
    if (!Number.isSafeInteger(seed) || seed < 0)
      throw new Error(`the seed ${seed} is not from 0 to 2^53 - 1`);
    if (own === null && temperature !== null)
      throw new Error("this voice has no control of temperature");
    if (temperature !== null && !(0 <= temperature && temperature <= 2))
      throw new Error(`the temperature ${temperature} is not from 0 to 2`);
    return own === null ? null : { temperature: temperature ?? own, seed };
  }

  /** Fades the ends by half cosines. */
  #faded(wav) {
    const n = Math.min(Math.round(FADE_S * this.sampleRate), Math.floor(wav.length / 2));
    return wav.map((value, i) => {
      const fromEdge = Math.min(i, wav.length - 1 - i);
      return fromEdge < n ? value * (0.5 - 0.5 * Math.cos(Math.PI * fromEdge / n)) : value;
    });
  }
}
