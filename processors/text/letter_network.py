"""The letter-to-sound network: a recurrent one of 0.7 million weights.

Each letter becomes zero, one or two phones of ARPAbet. The network has two layers of bidirectional
gated recurrent units (Cho et al. 2014, arXiv:1406.1078), stored in 8 bits with a scale per row.
`python -m tools.letter_to_sound --write` trained it on CMUdict.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

PATH = Path(__file__).with_name("data") / "letter_to_sound.npz"


class LetterNetwork(NamedTuple):
    """Weights, and what a letter can become."""

    weights: dict[str, np.ndarray]  # named as PyTorch does
    choices: tuple[tuple[str, ...], ...]  # phones of each class of the output


def phones_of(letters: Sequence[int], network: LetterNetwork | None = None) -> list[str]:
    """Predicts ARPAbet from rows of the embedding, at least one; None: the bundled network."""
    weights, choices = network or bundled_network()
    states = weights["embedding"][letters]
    for layer in ("l0", "l1"):
        ahead = _recurrent(states, weights, layer)
        back = _recurrent(states[::-1], weights, f"{layer}_reverse")[::-1]
        states = np.concatenate([ahead, back], axis=1)
    best = (states @ weights["output"].T + weights["output_bias"]).argmax(axis=1)
    return [phone for choice in best for phone in choices[choice]]


def unpacked(stored: Mapping[str, np.ndarray]) -> LetterNetwork:
    """Dequantises the arrays of a file."""
    names = tuple(tuple(name.split()) for name in str(stored["phones"]).split(","))
    weights = {}
    for key, array in stored.items():
        if key != "phones" and not key.endswith("_scale"):
            scale = stored.get(f"{key}_scale", np.ones(1))
            weights[key] = (array * scale.reshape(-1, *[1] * (array.ndim - 1))).astype(np.float32)
    return LetterNetwork(weights, names)


@cache
def bundled_network() -> LetterNetwork:
    """Returns the network in `PATH`."""
    with np.load(PATH, allow_pickle=False) as file:
        return unpacked(dict(file))


def _recurrent(inputs: np.ndarray, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Returns states (N, H) after each of the inputs (N, C); gates are ordered as in PyTorch."""
    rows = inputs @ weights[f"weight_ih_{name}"].T + weights[f"bias_ih_{name}"]  # (N, 3 H)
    of_state, bias = weights[f"weight_hh_{name}"], weights[f"bias_hh_{name}"]
    hidden = of_state.shape[1]
    state = np.zeros(hidden, np.float32)
    states = []
    for row in rows:
        summed = of_state @ state + bias
        gates = 1 / (1 + np.exp(-(row + summed)[: 2 * hidden]))
        new = np.tanh(row[2 * hidden :] + gates[:hidden] * summed[2 * hidden :])
        state = new + gates[hidden:] * (state - new)
        states.append(state)
    return np.stack(states)
