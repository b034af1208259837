/** Front end and networks of the voice, apart from the page: its answers to speak.js. */

import { openLetterNetwork } from "./letter_to_sound.js";
import * as ort from "./onnxruntime-web/ort.wasm.bundle.min.mjs";
import { loadPyodide } from "./pyodide/pyodide.mjs";

const READ = `
import json
from pathlib import Path
from frontend import Reader

reader = Reader(Path())

def read(text, language):
    try:
        sentences = reader(text, language)
    except ValueError as error:
        return json.dumps({"error": str(error)})
    return json.dumps([[clause._asdict() for clause in sentence] for sentence in sentences])

read
`;
const file = (name) => new URL(name, import.meta.url).href;
const openGraph = (name) => ort.InferenceSession.create(file(`${name}.onnx`));

async function openFrontend() {
  const [python, archive, phonesOf] = await Promise.all([
    loadPyodide({ indexURL: file("pyodide/") }),
    fetch(file("frontend.zip")).then((answer) => answer.arrayBuffer()),
    openLetterNetwork(file("letter_to_sound.safetensors")),
  ]);
  python.unpackArchive(archive, "zip");
  python.registerJsModule("browser", { phones_of: (letters) => phonesOf([...letters]) });
  return python.runPython(READ);
}

const opened = Promise.all([openFrontend(), openGraph("acoustic"), openGraph("vocoder")]);

const answers = {
  async open() {
    await opened;
  },

  async read(text, language) {
    const [read] = await opened;
    const sentences = JSON.parse(read(text, language));
    if (sentences.error) throw new Error(sentences.error);
    return sentences;
  },

  /** The sound of phones (S,), and the frames of each phone. */
  async speak(phoneIds, speaker, factors, flow) {
    const [, acoustic, vocoder] = await opened;
    const integers = (values) => BigInt64Array.from(values, BigInt);
    const inputs = {
      phone_ids: new ort.Tensor("int64", integers(phoneIds), [1, phoneIds.length]),
      speaker_id: new ort.Tensor("int64", integers([speaker]), [1]),
    };
    for (const [name, factor] of Object.entries(factors))
      inputs[name] = new ort.Tensor("float32", [factor], [1, 1]);
    if (flow) {
      inputs.temperature = new ort.Tensor("float32", [flow.temperature], [1]);
      inputs.seed = new ort.Tensor("int64", integers([flow.seed]), [1]);
    }
    const { mel, durations } = await acoustic.run(inputs);
    const { wav } = await vocoder.run({ mel });
    return { wav: wav.data, durations: Array.from(durations.data, Number) };
  },
};

onmessage = async ({ data: { number, name, given } }) => {
  try {
    postMessage({ number, answer: await answers[name](...given) });
  } catch (error) {
    postMessage({ number, error: error.message });
  }
};
