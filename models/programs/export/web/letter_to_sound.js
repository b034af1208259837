/** The letter-to-sound network of the front end, as in Arion's processors/text/letter_network.py. */

/** Reads letter_to_sound.safetensors; resolves to a function from rows of letters to phones. */
export async function openLetterNetwork(url) {
  const data = await (await fetch(url)).arrayBuffer();
  const start = 8 + Number(new DataView(data).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(data.slice(8, start)));
  const choices = header.__metadata__.phones.split(",").map((names) => names.match(/\S+/g) ?? []);
  const tensor = (name) => {  // the rows of a matrix, or a vector
    const { shape, data_offsets: [begin] } = header[name];
    const width = shape.at(-1);
    const rows = Array.from({ length: shape.length > 1 ? shape[0] : 1 }, (_, i) =>
      new Float32Array(data, start + begin + 4 * i * width, width));
    return shape.length > 1 ? rows : rows[0];
  };
  const layer = (name) => ["weight_ih", "bias_ih", "weight_hh", "bias_hh"]
    .map((part) => tensor(`${part}_${name}`));
  const layers = ["l0", "l1"].map((name) => [layer(name), layer(`${name}_reverse`)]);
  const [embedding, output, outputBias] = ["embedding", "output", "output_bias"].map(tensor);

  return (letters) => {
    let states = letters.map((letter) => embedding[letter]);
    for (const [ahead, back] of layers) {
      const after = recurrent(states, ahead);
      const before = recurrent(states.toReversed(), back).reverse();
      states = after.map((state, i) => Float32Array.from([...state, ...before[i]]));
    }
    return states.flatMap((state) => {
      const scores = affine(output, outputBias, state);
      return choices[scores.indexOf(Math.max(...scores))];
    });
  };
}

function affine(rows, bias, vector) {
  return bias.map((sum, i) => {
    const row = rows[i];
    for (let j = 0; j < row.length; j++) sum += row[j] * vector[j];
    return sum;
  });
}

/** States after each of the inputs, of gated recurrent units with PyTorch's order of gates. */
function recurrent(inputs, [ofInput, inputBias, ofState, stateBias]) {
  const sigmoid = (value) => 1 / (1 + Math.exp(-value));
  let state = new Float32Array(ofState[0].length);
  return inputs.map((input) => {
    const given = affine(ofInput, inputBias, input), held = affine(ofState, stateBias, state);
    const n = state.length;
    state = state.map((value, i) => {
      const reset = sigmoid(given[i] + held[i]), kept = sigmoid(given[n + i] + held[n + i]);
      const candidate = Math.tanh(given[2 * n + i] + reset * held[2 * n + i]);
      return candidate + kept * (value - candidate);
    });
    return state;
  });
}
