"""The loop of voices that align by attention, such as Tacotron 2."""

from collections.abc import Mapping

import numpy as np
import onnxruntime

MAX_STEPS = 2000  # speech is cut off here at the latest


def decode(
    graphs: Mapping[str, onnxruntime.InferenceSession],
    inputs: dict[str, np.ndarray],
    noise: np.random.Generator,
) -> np.ndarray:
    """Encodes phones, repeats the decoder's step until speech ends, and refines the frames.

    Args:
        graphs: "encoder", "decoder_step" and "postnet".
        inputs: `phone_ids` (1, N) and `speaker_id` (1,).
        noise: For the dropout of the prenet, which belongs to synthesis.

    Returns:
        The mel, (1, n_mels, T).
    """
    step = graphs["decoder_step"]
    memory, keys = graphs["encoder"].run(["memory", "keys"], inputs)
    n_phones = inputs["phone_ids"].shape[1]
    shapes = {
        tensor.name: [size if isinstance(size, int) else n_phones for size in tensor.shape]
        for tensor in step.get_inputs()
    }
    given = {"memory": memory, "keys": keys}
    state = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    names = [tensor.name for tensor in step.get_outputs()]
    frames: list[np.ndarray] = []
    stopped = False
    while not stopped and len(frames) < MAX_STEPS:
        given["noise"] = noise.random(shapes["noise"], np.float32)
        made = dict(zip(names, step.run(None, state | given), strict=True))
        frames.append(made["frames"])  # (1, frames of a step, n_mels)
        stopped = bool(made["stop"][0])
        state = {name: made.get(f"next_{name}", state[name]) for name in state}
        state["frame"] = made["frames"][:, -1]
    (mel,) = graphs["postnet"].run(["mel"], {"frames": np.concatenate(frames, axis=1)})
    # the frames of the step that ends speech are left out, except in the first step
    n_steps = max(1, len(frames) - stopped)
    whole: np.ndarray = mel[:, :, : n_steps * frames[0].shape[1]]
    return whole
