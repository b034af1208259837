"""How well a recording fits its text, as far as a model of its phones can tell."""

from collections.abc import Sequence

import numpy as np

from processors.alignment.markov.acoustics import FRAME_S
from processors.alignment.markov.chain import Chain, Segment
from processors.alignment.markov.edits import Edit, best_edit
from processors.alignment.markov.model import Found
from processors.records import AlignmentScore, SpokenText


def score_of(
    found: Found, chain: Chain, segments: Sequence[Segment], spoken: SpokenText
) -> AlignmentScore:
    """The score of an utterance.

    Args:
        found: Where its segments are, and how well everything fits each frame.
        chain: Its states.
        segments: Phones and places for silence.
        spoken: Its text, phones of words in the order of the segments.
    """
    edit = best_edit(found.emissions, found.background, chain, segments)
    phones = [phone for word in spoken.words for phone in spoken.phones[word.start : word.end]]
    numbers = [number for number, segment in enumerate(segments) if not segment.place]
    fits = _fits(found, chain, len(segments))[:, numbers]  # (2, phones)
    means = fits[1] / np.maximum(fits[0], 1e-3)
    worst = int(np.where(fits[0] > 0.5, means, np.inf).argmin())
    longest = int(fits[0].argmax())
    return AlignmentScore(
        misfit=round(edit.gain, 2),
        words=_place(edit, [word.text for word in spoken.words]),
        start_s=round(edit.start * FRAME_S, 3),
        end_s=round(edit.end * FRAME_S, 3),
        fit=round(float(fits[1].sum() / max(fits[0].sum(), 1e-3)), 3),
        worst_phone=phones[worst],
        worst_phone_s=round(float(found.ends_s[numbers[worst]]), 3),
        longest_phone=phones[longest],
        longest_s=round(float(fits[0][longest]) * FRAME_S, 3),
    )


def _fits(found: Found, chain: Chain, n_segments: int) -> np.ndarray:
    """Frames of each segment, and by how much they fit it better than the background, (2, N)."""
    fits = found.emissions[:, chain.pdfs] - found.background[:, None]  # (T, S)
    by_state = np.stack([found.occupancy.sum(axis=0), (found.occupancy * fits).sum(axis=0)])
    return by_state.reshape(2, n_segments, -1).sum(axis=2)


def _place(edit: Edit, words: Sequence[str]) -> str:
    """The words that are exchanged; those on both sides where something stands between them."""
    if edit.first < edit.past:
        return " ".join(words[edit.first : edit.past])
    before, after = words[: edit.first][-1:], words[edit.past :][:1]
    return " ... ".join([*before, *after] if before and after else [*before, "", *after])
