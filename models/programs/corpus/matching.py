"""Finds recognised words in a text, and chooses clips that are cut at pauses.

The words follow the text, with words that are wrong, missing or added, or continue at any other
place at a fixed price: a local alignment (Smith and Waterman 1981) with jumps, so that passages
that the recording skips, repeats or has in another order cost no more than their edges. A clip
begins and ends only where the words on both sides of a pause, or the ends of sentences, leave no
doubt about which words of the text belong to it.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import NamedTuple

import numpy as np

from models.programs.corpus.recognition import HeardWord
from models.programs.corpus.texts import SourceText
from modules.compiled import compiled

SHORTEST_S, LONGEST_S = 1.0, 15.0
PAUSE_S = 0.15  # the shortest at which a clip is cut
MAX_MISFIT = 0.35  # share of words that are recognised otherwise, where no aligner checks a clip
_LARGEST_MISFIT = 0.6  # where one does
_LONGEST_PAUSE_S = 1.0  # inside a clip; longer ones may hold noise
_MOST_GAINED = 3  # words in a row that are added or missing; misheard names are two or three
_WRONG, _ADDED, _MISSING, _JUMP = 1.0, 0.5, 0.7, 4.5  # prices; a right word earns 1
# a jump to the middle of a clause costs 1 more
_NEXT, _EXTRA, _SKIPPED, _JUMPED = range(4)  # moves
_BLOCK = 2000  # recognised words at a time; with a book of 100,000 words 200 MB
USUAL_S = 5.0  # of a clip, to which others are compared
_CUT, _LEFT_OUT = 8.0, 4.0  # prices of a cut in a sentence, and of a second that is left out
_MOST_WIDENED = 2  # words at the edge of a sentence that were not recognised
_UNHEARD_S = 0.4  # of such a word, in which the aligner looks for it
_FAR = 30  # words: what is nearer may be a slip and its repetition, or a missed word
# a word that is longer than this, and this for each phone, is noise
_SLOW_S, _SLOW_PHONE_S = 0.5, 0.15
_CLAUSE_COST = 0.05  # after a comma


class Claim(NamedTuple):
    """A stretch of a recording and the words of the text that it should hold."""

    first: int  # recognised words
    past: int
    text_first: int  # words of the text; -1 where none was found
    text_last: int
    misfit: float  # share of words that are recognised otherwise
    start_s: float  # with room for words at its edges that were not recognised
    end_s: float
    parts: tuple["Claim", ...] = ()  # at the best pause inside, if the whole does not fit


def match(heard: Sequence[str], text: Sequence[str], jumps: np.ndarray) -> np.ndarray:
    """Returns the place in the text of each recognised word, -1 for added words, (N,).

    `jumps` are the prices of a jump to each word of the text, (M,).
    """
    numbers = {name: n for n, name in enumerate(dict.fromkeys(text))}
    words = np.array([numbers.get(name, -1) for name in heard], dtype=np.int64)
    wanted = np.array([numbers[name] for name in text], dtype=np.int64)
    blocks = [words[n : n + _BLOCK] for n in range(0, len(words), _BLOCK)]
    return np.concatenate(
        [*(_best_path(block, wanted, jumps) for block in blocks), np.zeros(0, int)]
    )


@compiled
def _best_path(words: np.ndarray, text: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    N, M = len(words), len(text)
    moves = np.zeros((N, M), dtype=np.int8)
    origins = np.zeros(N, dtype=np.int64)
    before, scores = np.zeros(M), np.zeros(M)
    for n in range(N):
        origins[n] = np.argmax(before)
        for m in range(M):
            gain = 1.0 if words[n] == text[m] else -_WRONG
            best, move = before[origins[n]] - (jumps[m] if n else 0.0) + gain, _JUMPED
            if m and before[m - 1] + gain >= best:
                best, move = before[m - 1] + gain, _NEXT
            if before[m] - _ADDED > best:
                best, move = before[m] - _ADDED, _EXTRA
            if m and scores[m - 1] - _MISSING > best:
                best, move = scores[m - 1] - _MISSING, _SKIPPED
            scores[m], moves[n, m] = best, move
        before, scores = scores, before
    return _trace(moves, origins, int(np.argmax(before)))


@compiled
def _trace(moves: np.ndarray, origins: np.ndarray, last: int) -> np.ndarray:
    places = np.full(len(moves), -1)
    n, m = len(moves) - 1, last
    while n >= 0:
        move = moves[n, m]
        if move == _SKIPPED:
            m -= 1
            continue
        if move != _EXTRA:
            places[n] = m
        if move == _JUMPED:
            m = origins[n]
        elif move == _NEXT:
            m -= 1
        n -= 1
    return places


class Matched:
    """Recognised words with their places in a text."""

    def __init__(self, heard: Sequence[HeardWord], source: SourceText) -> None:
        names = [word.name for word in source.words]
        n_phones = {word.name: len(word.phones) for word in source.words}
        self.heard, self.source = heard, source
        self.is_noise = [
            word.end_s - word.start_s > _SLOW_S + _SLOW_PHONE_S * n_phones.get(word.name, 10)
            for word in heard
        ]
        costs = np.array([0.0, *(word.cut_cost for word in source.words[:-1])])
        jumps = _JUMP + 4 * np.minimum(costs, 0.25)
        spoken = zip(heard, self.is_noise, strict=True)
        self.places = match(["" if noise else word.name for word, noise in spoken], names, jumps)
        self.places[self.is_noise] = -1
        pairs = zip(heard, self.places.tolist(), strict=True)
        self.is_right = [place >= 0 and word.name == names[place] for word, place in pairs]
        cuts = [
            n
            for n, (before, after) in enumerate(pairwise(heard), 1)
            if after.start_s - before.end_s >= PAUSE_S or any(self.is_noise[n - 1 : n + 1])
        ]
        self.pieces = [span for span in pairwise([0, *cuts, len(heard)]) if span[1] > span[0]]

    def claim(self, first: int, past: int, edges: tuple[int, int] = (-1, -1)) -> Claim:
        """Returns which words of the text a stretch should hold; `edges` are sure words."""
        places = self.places[first:past]
        found = places[places >= 0]
        if not len(found) or (np.diff(found) <= 0).any():
            times = self.heard[first].start_s, self.heard[past - 1].end_s
            return Claim(first, past, -1, -1, 1.0, *times)
        text_first, text_last = (
            sure if sure >= 0 else int(place)
            for sure, place in zip(edges, found[[0, -1]], strict=True)
        )
        n_text = text_last - text_first + 1
        wrong = past - first - sum(self.is_right[first:past]) + n_text - len(found)
        right = np.flatnonzero(self.is_right[first:past])
        gained = np.diff(right) - np.diff(places[right])  # words, between two that are right
        misfit = 1.0 if np.abs(gained).max(initial=0) > _MOST_GAINED else wrong / n_text
        start_s = self.heard[first].start_s - _UNHEARD_S * (int(found[0]) - text_first)
        end_s = self.heard[past - 1].end_s + _UNHEARD_S * (text_last - int(found[-1]))
        return Claim(first, past, text_first, text_last, misfit, start_s, end_s)

    def edge(self, inside: int, outside: range) -> int:
        """Returns the word of the text with which a clip begins or ends, -1 where it is not sure.

        `inside` is the recognised word there, and `outside` are those before or after it. Inside a
        clause the next word of the text must follow, and one of both must be right. A single word
        next to a pause or to the end of a clause may be misheard noise. Up to `_MOST_WIDENED` words
        that were not recognised are added at the edge of a sentence.
        """
        place, step = int(self.places[inside]), outside.step
        if place < 0:
            return -1
        other = next((n for n in outside if self.places[n] >= 0), None)
        distance = step * (int(self.places[other]) - place) if other is not None else 0
        right = [0 <= n < len(self.heard) and self.is_right[n] for n in (inside, inside - step)]
        costs = [
            self._cut_cost(place + n * step - (step < 0)) for n in range(-1, 1 + _MOST_WIDENED)
        ]
        cost = costs[1]
        if cost < inf and cost <= min(costs[:3]):
            follows = distance == 1
            if (cost == 0 or follows) and (any(right) or (follows and self.is_right[other or 0])):
                return place
            is_near = other is not None and abs(distance) < _FAR  # words are missing or repeated
            if cost > 0 and not follows and cost <= _CLAUSE_COST and right[0] and not is_near:
                return place
        n_free = distance - 1 if distance > 0 else _MOST_WIDENED  # words up to the other's
        ends = [n for n, cost in enumerate(costs[2:], 1) if cost == 0 and n <= n_free]
        return place + step * ends[0] if ends and any(right) else -1

    def _cut_cost(self, cut: int) -> float:
        """Returns the price of a cut after a word of the text; -1 is before the first."""
        words = self.source.words
        return 0.0 if cut == -1 else words[cut].cut_cost if 0 <= cut < len(words) else inf

    def seconds(self, first: int, past: int) -> float:
        """Returns the time from the start of a word to the end of another."""
        return self.heard[past - 1].end_s - self.heard[first].start_s


def choose_clips(matched: Matched) -> tuple[list[Claim], list[Claim]]:
    """Returns clips, and the pieces that are in none, in order."""
    pieces, chooser = matched.pieces, _Chooser(matched)
    # price of the first n pieces, and the first piece of the last clip; -1: its piece is left out
    prices, choices = [0.0], [-1]
    for n, (last, past) in enumerate(pieces):
        best, choice = prices[n] + _LEFT_OUT * max(matched.seconds(last, past), 0.3), -1
        for k in range(n, -1, -1):
            if not chooser.may_join(k, n):
                break
            if found := chooser.claim(k, n):
                seconds = matched.seconds(pieces[k][0], past)
                cost = _CUT * matched.source.words[found.text_last].cut_cost
                cost += log(seconds / USUAL_S) ** 2 + seconds * found.misfit
                if prices[k] + cost < best:
                    best, choice = prices[k] + cost, k
        prices.append(best)
        choices.append(choice)
    clips, others, n = list[Claim](), list[Claim](), len(pieces)
    while n:
        if (k := choices[n]) < 0:
            k = n - 1
            others.append(matched.claim(*pieces[k]))
        else:
            clips.append(chooser.with_parts(k, n - 1))
        n = k
    return clips[::-1], others[::-1]


class _Chooser:
    """Pieces with the words of the text at which clips may begin and end, -1 for none."""

    def __init__(self, matched: Matched) -> None:
        self.matched, N = matched, len(matched.heard)
        self.starts = [matched.edge(first, range(first - 1, -1, -1)) for first, _ in matched.pieces]
        self.ends = [matched.edge(past - 1, range(past, N)) for _, past in matched.pieces]

    def may_join(self, k: int, n: int) -> bool:
        """Returns whether a clip may reach from piece k to n, if one may from k + 1 on."""
        matched, (first, past) = self.matched, self.matched.pieces[k]
        is_apart = k < n and matched.seconds(past, past) < -_LONGEST_PAUSE_S
        seconds = matched.seconds(first, matched.pieces[n][1])
        return seconds <= LONGEST_S and not is_apart and not matched.is_noise[first]

    def claim(self, k: int, n: int) -> Claim | None:
        """Returns the claim of the pieces from k to n, if they may be a clip."""
        first, past = self.matched.pieces[k][0], self.matched.pieces[n][1]
        edges = self.starts[k], self.ends[n]
        if self.matched.seconds(first, past) < SHORTEST_S or min(edges) < 0:
            return None
        claim = self.matched.claim(first, past, edges)
        return claim if claim.misfit <= _LARGEST_MISFIT else None

    def with_parts(self, k: int, n: int) -> Claim:
        """Returns the claim of pieces, with parts before and after the best pause inside.

        What is in no part, such as noise between them, has no words of the text.
        """
        pieces, words = self.matched.pieces, self.matched.source.words
        claim = self.claim(k, n)
        if claim is None:
            claim = self.matched.claim(pieces[k][0], pieces[n][1])
            return claim._replace(text_first=-1, text_last=-1)
        cuts = []
        for m in range(k, n):
            j = m + 1  # the first piece after the cut that has words of the text
            while j < n and (self.matched.places[slice(*pieces[j])] < 0).all():
                j += 1
            before, after = self.claim(k, m), self.claim(j, n)
            if before or after:
                cost = words[before.text_last].cut_cost if before else 0.0
                gap_s = -self.matched.seconds(pieces[j][0], pieces[m][1])
                cuts.append((before is None or after is None, cost, -gap_s, m, j))
        if not cuts:
            return claim
        *_, m, j = min(cuts)
        spans = [(k, m), *((i, i) for i in range(m + 1, j)), (j, n)]
        return claim._replace(parts=tuple(self.with_parts(*span) for span in spans))
