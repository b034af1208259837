"""Finds recognised words in a text, and chooses clips that are cut at pauses.

The words follow the text, with words that are wrong, missing or added, or continue at any other
place at a fixed price: a local alignment (Smith and Waterman 1981) with jumps, so that passages
that the recording skips, repeats or has in another order cost no more than their edges. A clip
begins and ends only where the words on both sides of a pause, or the ends of sentences, leave no
doubt about which words of the text belong to it.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf, log

import numpy as np

from models.programs.corpus.clips import LONGEST_PAUSE_S, LONGEST_S, SHORTEST_S, USUAL_S, CorpusClip
from models.programs.corpus.texts import SourceText
from modules.compiled import compiled
from processors.records import TimedWord

# prices; a right word earns 1. tools/benchmarks/long_recordings.py measures these and other limits
_WRONG, _ADDED, _MISSING, _JUMP = 1.0, 0.5, 0.7, 4.5
_JUMP_INSIDE = 1.0  # more, for a jump to the middle of a clause
_NEXT, _EXTRA, _SKIPPED, _JUMPED = range(4)  # moves
_BLOCK = 2000  # recognised words at a time; with a book of 100,000 words 200 MB

PAUSE_S = 0.15  # the shortest at which a clip is cut; closures of plosives are shorter
MAX_MISFIT = 35.0  # percent of words that are recognised otherwise, where no aligner checks a clip
_LARGEST_MISFIT = 60.0  # where one does
_MOST_GAINED = 3  # words in a row that are added or missing; misheard names are two or three
_CUT, _LEFT_OUT = 8.0, 4.0  # prices of a cut in a sentence, and of a second that is left out
_SHORTEST_LEFT_OUT_S = 0.3  # short noise is not free
_MOST_WIDENED = 2  # words at the edge of a sentence that were not recognised
_UNHEARD_S = 0.4  # of such a word, in which the aligner looks for it
_FAR = 30  # words: what is nearer may be a slip and its repetition, or a missed word
# a word that is longer than this, and this for each phone, is noise
_SLOW_S, _SLOW_PHONE_S = 0.5, 0.15
_UNKNOWN_PHONES = 10  # of a word that the text does not have
_CLAUSE_COST = 0.05  # of `SourceWord.cut_cost`, after a comma
_INSIDE_COST = 0.25  # the largest, inside a clause


def match(recognised: Sequence[str], text: Sequence[str], jumps: np.ndarray) -> np.ndarray:
    """Returns the word of the text that each recognised word is, -1 for added words, (N,).

    Args:
        recognised: N words; where there are many, blocks of them are matched on their own.
        text: M words.
        jumps: Price of a jump to each word of the text, (M,).
    """
    numbers = {name: n for n, name in enumerate(dict.fromkeys(text))}
    words = np.array([numbers.get(name, -1) for name in recognised], dtype=np.int64)  # (N,)
    text_words = np.array([numbers[name] for name in text], dtype=np.int64)  # (M,)
    blocks = [words[n : n + _BLOCK] for n in range(0, len(words), _BLOCK)]
    paths = [_best_path(block, text_words, jumps) for block in blocks]
    return np.concatenate([*paths, np.zeros(0, int)])


@compiled
def _best_path(words: np.ndarray, text: np.ndarray, jumps: np.ndarray) -> np.ndarray:
    """Finds the best path of numbered words (N,) through a text (M,); returns its words, (N,).

    score[n, m], of the best path on which recognised word n is word m of the text or comes after
    it, is the largest of

        score[n - 1, m - 1] + gain         the next word of the text; gain is 1 or -_WRONG
        max(score[n - 1]) - jumps[m] + gain     a jump; free for n = 0
        score[n - 1, m] - _ADDED           recognised word n is not in the text
        score[n, m - 1] - _MISSING         word m of the text was not recognised
    """
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
def _trace(moves: np.ndarray, origins: np.ndarray, m: int) -> np.ndarray:
    """Follows moves (N, M) back from word m of the text; `origins` (N,) are those of jumps."""
    best_words = np.full(len(moves), -1)
    n = len(moves) - 1
    while n >= 0:
        move = moves[n, m]
        if move in (_NEXT, _JUMPED):
            best_words[n] = m
        if move != _SKIPPED:
            n -= 1
        if move == _JUMPED:
            m = origins[n + 1]
        elif move != _EXTRA:
            m -= 1
    return best_words


def reason_for(misfit: float) -> str:
    """Returns why a stretch is left out, by the percentage of words that do not fit."""
    if misfit >= 100:
        return "its words are not in the text, or not in this order"
    if misfit > MAX_MISFIT:
        return f"{misfit:.0f} % of its words were recognised otherwise"
    return "no pause around it at which the text is certain"


class Matcher:
    """Finds the recognised words of a recording in a text, and chooses clips of whole pieces.

    Pieces lie between pauses. Indices n of recognised words, m of words of the text, k of pieces.
    """

    def __init__(
        self, recording: str, seconds: float, words: Sequence[TimedWord], source: SourceText
    ) -> None:
        self.recording, self.seconds, self.words, self.source = recording, seconds, words, source
        names = [word.name for word in source.words]
        n_phones = {word.name: len(word.phones) for word in source.words}
        self.is_noise = [
            end_s - start_s > _SLOW_S + _SLOW_PHONE_S * n_phones.get(name, _UNKNOWN_PHONES)
            for name, start_s, end_s in words
        ]
        costs = np.array([0.0, *(word.cut_cost for word in source.words[:-1])])
        jumps = _JUMP + _JUMP_INSIDE * np.minimum(costs / _INSIDE_COST, 1)
        pairs = zip(words, self.is_noise, strict=True)
        self.matches = match(["" if noise else word.text for word, noise in pairs], names, jumps)
        self.matches[self.is_noise] = -1
        matches = zip(words, self.matches.tolist(), strict=True)
        is_right = [m >= 0 and word.text == names[m] for word, m in matches]
        self.is_right = np.array(is_right, dtype=bool)
        cuts = [
            n
            for n, (before, after) in enumerate(pairwise(words), 1)
            if after.start_s - before.end_s >= PAUSE_S or any(self.is_noise[n - 1 : n + 1])
        ]
        self.pieces = [span for span in pairwise([0, *cuts, len(words)]) if span[1] > span[0]]
        # words of the text at which clips may begin and end, -1 for none
        self.firsts = [self._edge(n, range(n - 1, -1, -1)) for n, _ in self.pieces]
        self.lasts = [self._edge(n - 1, range(n, len(words))) for _, n in self.pieces]

    def _edge(self, inside: int, outside: range) -> int:
        """Returns the word of the text with which a clip begins or ends, -1 where it is not sure.

        `inside` is the recognised word there, and `outside` are those before or after it. Inside a
        clause the next word of the text must follow, and one of both must be right. A single word
        next to a pause or to the end of a clause may be misheard noise. Up to `_MOST_WIDENED` words
        that were not recognised are added at the edge of a sentence.
        """
        edge, step = int(self.matches[inside]), outside.step
        if edge < 0:
            return -1
        other = next((n for n in outside if self.matches[n] >= 0), None)
        distance = step * (int(self.matches[other]) - edge) if other is not None else 0
        right = [0 <= n < len(self.words) and self.is_right[n] for n in (inside, inside - step)]
        costs = [self._cut_cost(edge + n * step - (step < 0)) for n in range(-1, 1 + _MOST_WIDENED)]
        cost = costs[1]
        if cost < inf and cost <= min(costs[:3]):
            follows = distance == 1
            if (cost == 0 or follows) and (any(right) or (follows and self.is_right[other or 0])):
                return edge
            is_near = other is not None and abs(distance) < _FAR  # words are missing or repeated
            if cost > 0 and not follows and cost <= _CLAUSE_COST and right[0] and not is_near:
                return edge
        n_free = distance - 1 if distance > 0 else _MOST_WIDENED  # words up to the other's
        ends = [n for n, cost in enumerate(costs[2:], 1) if cost == 0 and n <= n_free]
        return edge + step * ends[0] if ends and any(right) else -1

    def _cut_cost(self, m: int) -> float:
        """Returns the price of a cut after a word of the text; -1 is before the first."""
        words = self.source.words
        return 0.0 if m == -1 else words[m].cut_cost if 0 <= m < len(words) else inf

    def _seconds(self, k: int, k_last: int) -> float:
        """Returns the time from the start of a piece to the end of another, before or after it."""
        return self.words[self.pieces[k_last][1] - 1].end_s - self.words[self.pieces[k][0]].start_s

    def _clip(self, k: int, k_last: int, edges: tuple[int, int] | None = None) -> CorpusClip:
        """Returns pieces as a clip; without the words of the text at its edges, as left out."""
        words, first, past = self.words, self.pieces[k][0], self.pieces[k_last][1]
        matches, is_right = self.matches[first:past], self.is_right[first:past]
        matched = matches[matches >= 0]
        start_s, end_s = words[first].start_s, words[past - 1].end_s
        before_s = words[first - 1].end_s if first else 0.0
        after_s = words[past].start_s if past < len(words) else self.seconds
        text, misfit = f"({' '.join(word.text for word in words[first:past])})", 100.0
        n_before = n_after = 0
        if len(matched) and (np.diff(matched) > 0).all():
            text_first, text_last = edges or (int(matched[0]), int(matched[-1]))
            text = self.source.between(text_first, text_last)
            n_before, n_after = int(matched[0]) - text_first, text_last - int(matched[-1])
            n_text = text_last - text_first + 1
            n_wrong = past - first - int(is_right.sum()) + n_text - len(matched)
            # words that are added or missing between two that are right
            gained = np.diff(np.flatnonzero(is_right)) - np.diff(matches[is_right])
            if np.abs(gained).max(initial=0) <= _MOST_GAINED:
                misfit = round(100 * n_wrong / n_text, 1)
        # what was recognised as another word, or is noise, may hold a word that was not recognised
        if n_before and first and self.matches[first - 1] < 0:
            before_s = words[first - 1].start_s
        if n_after and past < len(words) and self.matches[past] < 0:
            after_s = words[past].end_s
        return CorpusClip(
            self.recording,
            round(min(max(start_s - _UNHEARD_S * n_before, before_s), start_s), 3),
            round(max(min(end_s + _UNHEARD_S * n_after, after_s), end_s), 3),
            text,
            misfit,
            "" if edges else reason_for(misfit),
            before_s,
            after_s,
            *(edges or (-1, -1)),
            n_before + n_after,
        )

    def _sure_clip(self, k: int, k_last: int) -> CorpusClip | None:
        """Returns pieces as a clip, if they may be one."""
        edges = self.firsts[k], self.lasts[k_last]
        if self._seconds(k, k_last) < SHORTEST_S or min(edges) < 0:
            return None
        clip = self._clip(k, k_last, edges)
        return clip if clip.misfit <= _LARGEST_MISFIT else None

    def choose_clips(self) -> Iterator[CorpusClip]:
        """Yields the best clips, and the pieces that are in none with the reason, from the last."""
        # price of the first n pieces, and the first piece of the last clip; -1: it is left out
        prices, choices = [0.0], [-1]
        for last in range(len(self.pieces)):
            seconds = max(self._seconds(last, last), _SHORTEST_LEFT_OUT_S)
            best, choice = prices[last] + _LEFT_OUT * seconds, -1
            for k in range(last, -1, -1):
                seconds = self._seconds(k, last)
                is_apart = k < last and -self._seconds(k + 1, k) > LONGEST_PAUSE_S
                if seconds > LONGEST_S or is_apart or self.is_noise[self.pieces[k][0]]:
                    break
                if clip := self._sure_clip(k, last):
                    price = prices[k] + _CUT * self._cut_cost(clip.text_last)
                    price += log(seconds / USUAL_S) ** 2 + seconds * clip.misfit / 100
                    if price < best:
                        best, choice = price, k
            prices.append(best)
            choices.append(choice)
        n = len(self.pieces)
        while n:
            k = choices[n]
            yield self._clip(n - 1, n - 1) if k < 0 else self._with_parts(k, n - 1)
            n = k if k >= 0 else n - 1

    def _with_parts(self, k: int, k_last: int) -> CorpusClip:
        """Returns pieces as a clip with parts before and after the best pause inside.

        What is in no part, such as noise between them, is left out.
        """
        clip = self._sure_clip(k, k_last)
        if clip is None:
            return self._clip(k, k_last)
        cuts = []
        for end in range(k, k_last):
            start = end + 1  # the first piece after the cut that has words of the text
            while start < k_last and (self.matches[slice(*self.pieces[start])] < 0).all():
                start += 1
            before, after = self._sure_clip(k, end), self._sure_clip(start, k_last)
            if before or after:
                cost = self._cut_cost(before.text_last) if before else 0.0
                is_half = before is None or after is None
                cuts.append((is_half, cost, self._seconds(start, end), end, start))
        if not cuts:
            return clip
        *_, end, start = min(cuts)
        spans = [(k, end), *((n, n) for n in range(end + 1, start)), (start, k_last)]
        return clip._replace(parts=tuple(self._with_parts(*span) for span in spans))
