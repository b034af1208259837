"""Aligns the text between two clips with the sound between them.

Where noise hides a word at the edge of a sentence, the recognised words leave its text in doubt. If
a run of sentences is about as long as a stretch of sound, and the aligner finds all of its words
there, the stretch becomes a clip.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product
from math import log
from typing import NamedTuple

import numpy as np

from models.programs.corpus.checking import Checker
from models.programs.corpus.clips import LONGEST_S, RATE, SHORTEST_S, CorpusClip
from models.programs.corpus.matching import reason_for
from models.programs.corpus.recognition import Piece, find_pieces
from models.programs.corpus.texts import SourceText

_LONGEST_GAP_S = 60.0
_MOST_SENTENCES = 5  # next to each of the clips around a gap, that are tried
_AROUND_S = 30.0  # before and after a gap: the level of its sound is relative to this speech
_PAUSE_S = 0.06  # between noise and speech; clips are cut at longer ones
_SAME_S = 0.05  # edges that are closer count as one
_TOLERANCE = 0.45  # the largest |log(duration / usual duration)| of a candidate
_PREFERENCE = 0.1  # for each sentence of a candidate, and for each end of the gap that it reaches
_MOST_TRIES = 16
_SHORTEST_REST_S = 0.3  # of what a new clip leaves of another; less overlap moves only its edge


class Sentence(NamedTuple):
    """A sentence of a text, or a part of one."""

    first: int  # word of the text
    last: int
    text: str
    n_phones: int


class Gap(NamedTuple):
    """Sound and text between two clips."""

    recording: str
    start_s: float
    end_s: float
    phone_s: float  # mean duration of a phone in the clips of the recording that fit
    sentences: tuple[Sentence, ...]
    left_out: tuple[CorpusClip, ...]  # where the recogniser found words


def find_gaps(clips: Sequence[CorpusClip], source: SourceText, seconds: float) -> Iterator[Gap]:
    """Yields the gaps of a recording that have sound and text, from its clips in order."""
    good = [clip for clip in clips if not clip.reason]
    if not good:
        return
    words = chain.from_iterable(source.words[c.text_first : c.text_last + 1] for c in good)
    phone_s = sum(c.end_s - c.start_s for c in good) / sum(len(word.phones) for word in words)
    for before, after in zip([None, *good], [*good, None], strict=True):
        start_s, first = (before.end_s, before.text_last + 1) if before else (0.0, 0)
        end_s, past = (after.start_s, after.text_first) if after else (seconds, len(source.words))
        if first < past and SHORTEST_S <= end_s - start_s <= _LONGEST_GAP_S:
            left_out = (c for c in clips if c.reason and start_s < c.end_s and c.start_s < end_s)
            sentences = tuple(_sentences(source, first, past))
            yield Gap(good[0].recording, start_s, end_s, phone_s, sentences, tuple(left_out))


def _sentences(source: SourceText, first: int, past: int) -> Iterator[Sentence]:
    """Yields the sentences of words `first` to `past`; of a long text those next to the clips."""
    ends = [m + 1 for m in range(first, past - 1) if not source.words[m].cut_cost]
    spans = list(pairwise([first, *ends, past]))
    if len(spans) > 2 * _MOST_SENTENCES:
        spans = spans[:_MOST_SENTENCES] + spans[-_MOST_SENTENCES:]
    for start, end in spans:
        n_phones = sum(len(word.phones) for word in source.words[start:end])
        yield Sentence(start, end - 1, source.between(start, end - 1), n_phones)


@dataclass(frozen=True)
class Filler:
    """Finds clips in gaps; may be sent to other processes."""

    checker: Checker

    def __call__(self, _key: str, gaps: Sequence[Gap]) -> list[CorpusClip]:
        """Returns the clips that were found in gaps."""
        return [clip for gap in gaps for clip in self._fill(gap)]

    def _fill(self, gap: Gap) -> Iterator[CorpusClip]:
        sounds = self._sounds(gap)
        for candidate in self._candidates(gap, sounds)[:_MOST_TRIES]:
            clip = self.checker.align(candidate)
            if clip.reason or clip.end_s - clip.start_s < SHORTEST_S:
                continue
            # no margin within a sound that goes on beyond the clip, which is noise
            sound_ends = (min(s.end_s, clip.start_s) for s in sounds if s.start_s < clip.start_s)
            sound_starts = (max(s.start_s, clip.end_s) for s in sounds if s.end_s > clip.end_s)
            before = tuple(s for s in gap.sentences if s.last < clip.text_first)
            after = tuple(s for s in gap.sentences if s.first > clip.text_last)
            room_start_s = max(sound_ends, default=gap.start_s)
            room_end_s = min(sound_starts, default=gap.end_s)
            yield from self._fill(gap._replace(end_s=clip.start_s, sentences=before))
            yield clip._replace(room_start_s=room_start_s, room_end_s=room_end_s)
            yield from self._fill(gap._replace(start_s=clip.end_s, sentences=after))
            return

    def _candidates(self, gap: Gap, sounds: Sequence[Piece]) -> list[CorpusClip]:
        """Returns runs of sentences in stretches of sound, the most likely first."""
        starts = _edges(gap, [s.start_s for s in sounds], [c.start_s for c in gap.left_out])
        ends = _edges(gap, [s.end_s for s in sounds], [c.end_s for c in gap.left_out])
        runs = list(_runs(gap.sentences))
        ranked = list[tuple[float, CorpusClip]]()
        for start_s, end_s in product(starts, ends):
            if not SHORTEST_S <= end_s - start_s <= LONGEST_S:
                continue
            # the aligner may find a word in the noise before or after recognised ones
            sound_ends = (s.end_s for s in sounds if s.end_s <= start_s)
            sound_starts = (s.start_s for s in sounds if s.start_s >= end_s)
            rooms = max(sound_ends, default=gap.start_s), min(sound_starts, default=gap.end_s)
            n_ends = (start_s == starts[0]) + (end_s == ends[-1])
            for run in runs:
                usual_s = gap.phone_s * sum(sentence.n_phones for sentence in run)
                distance = abs(log((end_s - start_s) / usual_s))
                if distance < _TOLERANCE:
                    text = " ".join(sentence.text for sentence in run)
                    words = run[0].first, run[-1].last
                    clip = CorpusClip(gap.recording, start_s, end_s, text, 0.0, "", *rooms, *words)
                    ranked.append((distance - _PREFERENCE * (len(run) + n_ends), clip))
        return [clip for _, clip in sorted(ranked)]

    def _sounds(self, gap: Gap) -> list[Piece]:
        """Finds the sound of a gap between short pauses; levels are relative to what is around."""
        pcm = np.load(self.checker.folder / f"{gap.recording}.npy", mmap_mode="r")
        first_s = max(gap.start_s - _AROUND_S, 0.0)
        around = pcm[round(first_s * RATE) : round((gap.end_s + _AROUND_S) * RATE)]
        pieces = [[first_s + edge_s for edge_s in p] for p in find_pieces(around, _PAUSE_S)]
        inside = (Piece(max(s, gap.start_s), min(e, gap.end_s)) for s, e in pieces)
        return [piece for piece in inside if piece.end_s - piece.start_s > _SAME_S]


def _edges(gap: Gap, of_sounds: Sequence[float], of_words: Sequence[float]) -> list[float]:
    """Returns the edges of sounds and of recognised words in a gap, in order."""
    others = (edge for edge in of_words if gap.start_s <= edge <= gap.end_s)
    far = (edge for edge in others if all(abs(edge - s) > _SAME_S for s in of_sounds))
    return sorted([*of_sounds, *far])


def _runs(sentences: Sequence[Sentence]) -> Iterator[Sequence[Sentence]]:
    """Yields the runs of sentences that follow each other in the text."""
    sentences = [sentence for sentence in sentences if sentence.n_phones]
    for start in range(len(sentences)):
        for end in range(start + 1, len(sentences) + 1):
            if end - start > 1 and sentences[end - 1].first != sentences[end - 2].last + 1:
                break
            yield sentences[start:end]


def with_filled(clips: Sequence[CorpusClip], filled: Sequence[CorpusClip]) -> list[CorpusClip]:
    """Returns clips with those that were found between them, in order."""
    remaining = list(clips)
    for new_clip in filled:
        remaining = [part for clip in remaining for part in _beside(clip, new_clip)]
    return sorted([*remaining, *filled], key=lambda clip: clip.start_s)


def _beside(clip: CorpusClip, new_clip: CorpusClip) -> Iterator[CorpusClip]:
    """Yields the parts of a clip that a new one does not cover, whose margins end at it.

    A clip that was left out keeps its text and reason if hardly any of it is covered.
    """
    overlap_s = min(clip.end_s, new_clip.end_s) - max(clip.start_s, new_clip.start_s)
    if overlap_s < _SHORTEST_REST_S:
        if clip.start_s < new_clip.start_s:
            end_s = min(clip.end_s, new_clip.start_s)
            yield clip._replace(end_s=end_s, room_end_s=min(clip.room_end_s, new_clip.start_s))
        else:
            start_s = max(clip.start_s, new_clip.end_s)
            room_start_s = max(clip.room_start_s, new_clip.end_s)
            yield clip._replace(start_s=start_s, room_start_s=room_start_s)
        return
    for start_s, end_s in ((clip.start_s, new_clip.start_s), (new_clip.end_s, clip.end_s)):
        if end_s - start_s >= _SHORTEST_REST_S:
            yield CorpusClip(clip.recording, start_s, end_s, "", 100.0, reason_for(100.0))
