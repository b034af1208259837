"""A small FastSpeech 2 in the layout of TensorFlowTTS, and its forward pass in NumPy.

Written from the description of the network, without the code under test.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np

HIDDEN, HEADS, FILTER, PREDICTOR, N_MELS, N_SYMBOLS, ROWS = 8, 2, 12, 6, 10, 149, 120
BLOCKS = {"encoder": 2, "decoder": 1}
LAYERS = 5  # of the postnet
YAML = """
hop_size: 256
model_type: "fastspeech2"
fastspeech2_params:
    encoder_num_attention_heads: 2
    decoder_num_attention_heads: 2
    encoder_hidden_act: "mish"
    decoder_hidden_act: "mish"
    hidden_dropout_prob: 0.2
    attention_probs_dropout_prob: 0.1
    variant_predictor_dropout_rate: 0.5
"""


class _Arrays:
    """Random arrays by their names in Keras, without the top-level group."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.found: dict[str, np.ndarray] = {}

    def array(self, name: str, *shape: int, centre: float = 0.0) -> None:
        scale = 0.1 if len(shape) < 2 else 1 / np.sqrt(np.prod(shape[:-1]))
        values = centre + scale * self.random.standard_normal(shape)
        self.found[f"{name}:0"] = values.astype("f4")

    def layer(self, name: str, *kernel: int) -> None:
        self.array(f"{name}/kernel", *kernel)
        self.array(f"{name}/bias", kernel[-1])

    def norm(self, name: str, size: int) -> None:
        self.array(f"{name}/gamma", size, centre=1.0)
        self.array(f"{name}/beta", size)

    def block(self, name: str) -> None:
        for piece in ("query", "key", "value"):
            self.layer(f"{name}/attention/self/{piece}", HIDDEN, HIDDEN)
        self.layer(f"{name}/attention/output/dense", HIDDEN, HIDDEN)
        self.norm(f"{name}/attention/output/LayerNorm", HIDDEN)
        self.layer(f"{name}/intermediate/conv1d_1", 3, HIDDEN, FILTER)
        self.layer(f"{name}/intermediate/conv1d_2", 3, FILTER, HIDDEN)
        self.norm(f"{name}/output/LayerNorm", HIDDEN)

    def predictor(self, name: str, number: int) -> None:
        inner = f"{name}_predictor/sequential_{number}"
        for layer, channels in enumerate((HIDDEN, PREDICTOR)):
            self.layer(f"{inner}/conv_._{layer}", 3, channels, PREDICTOR)
            self.norm(f"{inner}/LayerNorm_._{layer}", PREDICTOR)
        self.layer(f"{name}_predictor/dense_{number}", PREDICTOR, 1)

    def postnet(self) -> None:
        sizes = [N_MELS, *[512] * (LAYERS - 1), N_MELS]
        for number, (channels, size) in enumerate(pairwise(sizes)):
            name = f"postnet/batch_norm_._{number}"
            self.layer(f"postnet/conv_._{number}", 5, channels, size)
            self.norm(name, size)
            self.array(f"{name}/moving_mean", size)
            variance = self.random.uniform(0.001, 1.5, size)
            self.found[f"{name}/moving_variance:0"] = variance.astype("f4")


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays by their names in Keras, without the top-level group."""
    arrays = _Arrays(seed)
    arrays.array("embeddings/charactor_embeddings/weight", N_SYMBOLS, HIDDEN)
    table = positions(ROWS + 1)
    table[0] = 0
    for part in ("embeddings", "decoder"):
        arrays.found[f"{part}/position_embeddings/embeddings:0"] = table
    for part, number in BLOCKS.items():
        for block in range(number):
            arrays.block(f"{part}/layer_._{block}")
    for number, name in enumerate(("f0", "energy", "duration"), start=1):
        arrays.predictor(name, number)
    arrays.found["duration_predictor/dense_3/bias:0"] += 0.7  # phones of some frames
    for name in ("f0", "energy"):
        arrays.layer(f"{name}_embeddings", 9, 1, HIDDEN)
    arrays.layer("mel_before", HIDDEN, N_MELS)
    arrays.postnet()
    return arrays.found


def statistics(seed: int = 1) -> dict[str, np.ndarray]:
    """The files of a dump: rows of means and standard deviations."""
    random = np.random.default_rng(seed)
    mel = np.stack([random.uniform(-4, -1, N_MELS), random.uniform(0.4, 1.2, N_MELS)])
    return {
        "stats.npy": mel.astype("f4"),
        "stats_f0.npy": np.array([[214.0], [53.0]], dtype="f4"),
        "stats_energy.npy": np.array([[21.5], [17.9]], dtype="f4"),
    }


def write(
    folder: Path,
    arrays: dict[str, np.ndarray],
    name: str = "model.h5",
    scope: str = "tf_fast_speech2/",
) -> Path:
    """Writes `<layer>/tf_fast_speech2/<layer>/...`, as Keras does, with the files that it needs."""
    import h5py

    folder.mkdir(parents=True, exist_ok=True)
    with h5py.File(folder / name, "w") as file:
        for key, value in arrays.items():
            file[f"{key.split('/')[0]}/{scope}{key}"] = value
        file.create_group("length_regulator").attrs["weight_names"] = []
    (folder / "config.yml").write_text(YAML)
    for file_name, rows in statistics().items():
        np.save(folder / file_name, rows)
    return folder / name


def positions(length: int) -> np.ndarray:
    columns = np.arange(HIDDEN)
    angles = np.arange(length)[:, None] / 10000 ** (2.0 * (columns // 2) / HIDDEN)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles)).astype("f4")


class Network:
    """The forward pass of one utterance, in float64."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = {name: value.astype("f8") for name, value in arrays.items()}

    def speak(self, ids: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mel in log10 (T, M), durations, f0 in Hz and energy, (N,) each."""
        get = self.arrays
        table = get["embeddings/position_embeddings/embeddings:0"]
        hidden = get["embeddings/charactor_embeddings/weight:0"][ids] + table[1 : len(ids) + 1]
        hidden = self._blocks("encoder", hidden)
        frames = np.maximum(np.exp(self._predict("duration", 3, hidden)) - 1, 0)
        durations = np.round(frames).astype(int)
        f0, energy = self._predict("f0", 1, hidden), self._predict("energy", 2, hidden)
        for name, values in (("f0", f0), ("energy", energy)):
            hidden = hidden + self._conv(f"{name}_embeddings", values[:, None])
        hidden = np.repeat(hidden, durations, axis=0)
        table = get["decoder/position_embeddings/embeddings:0"]
        hidden = self._blocks("decoder", hidden + table[1 : len(hidden) + 1])
        before = hidden @ get["mel_before/kernel:0"] + get["mel_before/bias:0"]
        after = before
        for number in range(LAYERS):
            after = self._batch_norm(number, self._conv(f"postnet/conv_._{number}", after))
            after = np.tanh(after) if number < LAYERS - 1 else after
        stats = {name: rows.astype("f8") for name, rows in statistics().items()}
        mean, scale = stats["stats.npy"]
        contours = (
            values * stats[f"stats_{name}.npy"][1] + stats[f"stats_{name}.npy"][0]
            for name, values in (("f0", f0), ("energy", energy))
        )
        return (before + after) * scale + mean, durations, *contours

    def _blocks(self, part: str, hidden: np.ndarray) -> np.ndarray:
        for block in range(BLOCKS[part]):
            name = f"{part}/layer_._{block}"
            attended = self._dense(f"{name}/attention/output/dense", self._attend(name, hidden))
            hidden = self._norm(f"{name}/attention/output/LayerNorm", attended + hidden)
            inner = self._conv(f"{name}/intermediate/conv1d_1", hidden)
            inner = inner * np.tanh(np.log1p(np.exp(inner)))  # mish
            inner = self._conv(f"{name}/intermediate/conv1d_2", inner)
            hidden = self._norm(f"{name}/output/LayerNorm", inner + hidden)
        return hidden

    def _attend(self, name: str, hidden: np.ndarray) -> np.ndarray:
        size, contexts = HIDDEN // HEADS, []
        inner = f"{name}/attention/self"
        parts = [self._dense(f"{inner}/{part}", hidden) for part in ("query", "key", "value")]
        for head in range(HEADS):
            query, key, value = (part[:, head * size : (head + 1) * size] for part in parts)
            scores = np.exp(query @ key.T / np.sqrt(size))
            contexts.append(scores / scores.sum(axis=1, keepdims=True) @ value)
        return np.concatenate(contexts, axis=1)

    def _predict(self, name: str, number: int, hidden: np.ndarray) -> np.ndarray:
        inner = f"{name}_predictor/sequential_{number}"
        for layer in range(2):
            hidden = np.maximum(self._conv(f"{inner}/conv_._{layer}", hidden), 0)
            hidden = self._norm(f"{inner}/LayerNorm_._{layer}", hidden)
        return self._dense(f"{name}_predictor/dense_{number}", hidden)[:, 0]

    def _dense(self, name: str, values: np.ndarray) -> np.ndarray:
        return values @ self.arrays[f"{name}/kernel:0"] + self.arrays[f"{name}/bias:0"]

    def _conv(self, name: str, values: np.ndarray) -> np.ndarray:
        kernel = self.arrays[f"{name}/kernel:0"]  # (K, in, out)
        padded = np.pad(values, ((len(kernel) // 2,) * 2, (0, 0)))
        taps = [padded[k : k + len(values)] @ kernel[k] for k in range(len(kernel))]
        return np.sum(taps, axis=0) + self.arrays[f"{name}/bias:0"]

    def _norm(self, name: str, values: np.ndarray) -> np.ndarray:
        centred = values - values.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return scaled * self.arrays[f"{name}/gamma:0"] + self.arrays[f"{name}/beta:0"]

    def _batch_norm(self, number: int, values: np.ndarray) -> np.ndarray:
        name = f"postnet/batch_norm_._{number}"
        mean, variance, gamma, beta = (
            self.arrays[f"{name}/{end}:0"]
            for end in ("moving_mean", "moving_variance", "gamma", "beta")
        )
        return (values - mean) / np.sqrt(variance + 1e-3) * gamma + beta
