# ruff: noqa: T201
"""Trains the network of processors/text/letter_network.py on CMUdict; half an hour of one core.

Without --write, words whose checksum is divisible by 20 are held back, and spoken by the network
and by espeak-ng. With it, all are trained on.
"""

import argparse
import math
import random
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from processors.text.espeak import EspeakPhonemizer
from processors.text.g2p import CMUDICT_PATH, LETTERS, pronounce
from processors.text.letter_network import PATH, unpacked
from processors.text.symbols import to_arpabet, with_primary_stress

Phones = tuple[str, ...]
Aligned = list[Phones]  # phones of each letter
HIDDEN = 160
EMBEDDED = 48
BATCH = 256
EPOCHS = 16
RAREST = 8  # phones of a letter that occur less often are left out with their words
UNSEEN = 1e-7  # its probability


def dictionary() -> list[tuple[str, Phones]]:
    """Words of letters with their first pronunciations."""
    lines = CMUDICT_PATH.read_text(encoding="utf-8").splitlines()
    entries = [(word, tuple(phones)) for word, *phones in map(str.split, lines)]
    return [
        (word, phones)
        for word, phones in entries
        if set(word) <= set(LETTERS) and len(word) > 1 and len(phones) <= 2 * len(word)
    ]


def align(entries: Sequence[tuple[str, Phones]], rounds: int = 6) -> list[Aligned]:
    """Splits the phones of each word among its letters, two at most, by Viterbi training."""
    counts = counts_of_neighbours(entries)
    for turn in range(rounds):
        costs = Costs(counts, new_pairs=turn < 2)
        aligned = [cheapest(word, phones, costs) for word, phones in entries]
        counts = defaultdict(Counter)
        for (word, _), split in zip(entries, aligned, strict=True):
            for letter, phones in zip(word, split, strict=True):
                counts[letter][phones] += 1
    return aligned


def counts_of_neighbours(entries: Sequence[tuple[str, Phones]]) -> dict[str, Counter[Phones]]:
    """How often a phone is near the place of a letter; a fifth of the letters are silent."""
    counts: dict[str, Counter[Phones]] = defaultdict(Counter)
    for word, phones in entries:
        for i, letter in enumerate(word):
            for j, phone in enumerate(phones):
                if abs((i + 0.5) / len(word) - (j + 0.5) / len(phones)) < 0.25:
                    counts[letter][(phone,)] += 1
    for row in counts.values():
        row[()] = round(0.2 * row.total())
    return counts


class Costs(dict[tuple[str, Phones], float]):
    """Negative log-probabilities of the phones of a letter."""

    def __init__(self, counts: dict[str, Counter[Phones]], *, new_pairs: bool) -> None:
        self._counts = counts
        self._totals = {letter: row.total() for letter, row in counts.items()}
        self._new_pairs = new_pairs

    def __missing__(self, key: tuple[str, Phones]) -> float:
        letter, phones = key
        row, total = self._counts[letter], self._totals[letter]
        seen = row[phones] / total
        if not seen and self._new_pairs and len(phones) == 2:
            seen = 0.05 * row[phones[:1]] / total * row[phones[1:]] / total
        self[key] = -math.log(max(seen, UNSEEN))
        return self[key]


def cheapest(word: str, phones: Phones, costs: Costs) -> Aligned:
    n_letters, n_phones = len(word), len(phones)
    best = {(0, 0): 0.0}
    taken = {}
    for i, letter in enumerate(word):
        for j in range(max(0, n_phones - 2 * (n_letters - i)), min(n_phones, 2 * i) + 1):
            for k in range(min(2, n_phones - j) + 1):
                total = best.get((i, j), math.inf) + costs[letter, phones[j : j + k]]
                if total < best.get((i + 1, j + k), math.inf):
                    best[i + 1, j + k], taken[i + 1, j + k] = total, k
    split: Aligned = []
    end = n_phones
    for i in range(n_letters, 0, -1):
        start = end - taken[i, end]
        split.append(phones[start:end])
        end = start
    return split[::-1]


class Network(nn.Module):
    def __init__(self, n_choices: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), EMBEDDED)
        self.recurrent = nn.GRU(
            EMBEDDED, HIDDEN, 2, bidirectional=True, dropout=0.25, batch_first=True
        )
        self.output = nn.Linear(2 * HIDDEN, n_choices)
        self.dropout = nn.Dropout(0.25)

    def forward(self, letters: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(
            self.dropout(self.embedding(letters)), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.recurrent(packed)[0], batch_first=True)
        return self.output(self.dropout(states))


def batches(rows: list[tuple[str, Aligned]], choices: dict[Phones, int]) -> Iterator[list[Tensor]]:
    """Letters (B, N), choices (B, N) with -1 as padding, and lengths (B,), in random order."""
    random.shuffle(rows)
    rows.sort(key=lambda row: len(row[0]))  # stable: words of a length stay shuffled
    starts = [*range(0, len(rows), BATCH)]
    random.shuffle(starts)
    for start in starts:
        some = rows[start : start + BATCH]
        letters = [torch.tensor([LETTERS.index(letter) for letter in word]) for word, _ in some]
        goals = [torch.tensor([choices[phones] for phones in split]) for _, split in some]
        yield [
            pad_sequence(letters, batch_first=True),
            pad_sequence(goals, batch_first=True, padding_value=-1),
            torch.tensor([len(word) for word, _ in some]),
        ]


def train(rows: list[tuple[str, Aligned]]) -> dict[str, np.ndarray]:
    """The arrays of the network's file."""
    torch.manual_seed(0)
    random.seed(0)
    counts = Counter(phones for _, split in rows for phones in split)
    names = [phones for phones, count in counts.most_common() if count >= RAREST]
    choices = {phones: index for index, phones in enumerate(names)}
    rows = [row for row in rows if all(phones in choices for phones in row[1])]
    network = Network(len(names))
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=0.01)
    steps = EPOCHS * math.ceil(len(rows) / BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, steps, pct_start=0.1)
    for epoch in range(EPOCHS):
        losses = []
        for letters, goals, lengths in batches(rows, choices):
            scores = network(letters, lengths).flatten(0, 1)
            loss = nn.functional.cross_entropy(scores, goals.flatten(), ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}", flush=True)
    arrays = {"phones": np.array(",".join(" ".join(phones) for phones in names))}
    renamed = {"embedding.weight": "embedding", "output.weight": "output"}
    renamed["output.bias"] = "output_bias"
    for key, tensor in network.state_dict().items():
        name = renamed.get(key, key.removeprefix("recurrent."))
        weights = tensor.numpy()
        if weights.ndim == 1:
            arrays[name] = weights.astype(np.float16)
            continue
        scale = np.abs(weights).max(axis=1) / 127
        arrays[f"{name}_scale"] = scale
        arrays[name] = np.rint(weights / scale[:, None]).astype(np.int8)
    return arrays


def errors(expected: Sequence[Phones], spoken: Sequence[Phones]) -> str:
    """Word and phone error, with and without stress."""
    told = []
    for strip in ("", "012"):
        pairs = [
            ([phone.rstrip(strip) for phone in said], [phone.rstrip(strip) for phone in phones])
            for phones, said in zip(expected, spoken, strict=True)
        ]
        words = sum(said != phones for said, phones in pairs) / len(pairs)
        n_phones = sum(len(phones) for _, phones in pairs)
        phone_error = sum(distance(said, phones) for said, phones in pairs) / n_phones
        told.append(f"{words:.1%} of the words, {phone_error:.1%} of the phones")
    return f"wrong: {told[0]}; without stress {told[1]}"


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    row = [*range(len(b) + 1)]
    for i, x in enumerate(a, 1):
        previous, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x != y)))
    return row[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PATH.name}")
    write = parser.parse_args().write
    torch.set_num_threads(1)
    entries = dictionary()
    rows = [(word, split) for (word, _), split in zip(entries, align(entries), strict=True)]
    if write:
        np.savez_compressed(PATH, allow_pickle=False, **train(rows))
        return
    held = {word: phones for word, phones in entries if zlib.crc32(word.encode()) % 20 == 0}
    network = unpacked(train([row for row in rows if row[0] not in held]))
    said = {
        "letter_to_sound": [with_primary_stress(pronounce(word, network) or ()) for word in held],
        "espeak-ng": [to_arpabet(said.phones) or () for said in EspeakPhonemizer("en-us")([*held])],
    }
    print(f"{len(held)} words held back")
    for name, spoken in said.items():
        print(f"{name}: {errors([*held.values()], spoken)}")


if __name__ == "__main__":
    main()
