"""The outputs of passages as one speech: pauses and breaks, the times of words, fades and level.

Plain NumPy.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from models.synthesizer.passages import Passage
from models.synthesizer.speech import Speech
from modules.alignment.attention_quality import AttentionQuality
from modules.mel import MelConfig
from processors.records import TimedMark, TimedSentence, TimedWord
from processors.text.symbols import PAUSES, SILENCE
from utils.logging import get_logger

FADE_S = 0.005  # at both ends of a part: an edge that is not at zero would click
AUDIBLE_PEAK = 0.01  # -40 dB; the softest recordings of corpora have peaks above 0.05
MAX_PHONES_PER_S = 40  # hurried speech has 20
PEAK = 0.99  # louder speech is scaled down to this, so that no sample is clipped
T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """Output of one forward pass for one sentence, or a pause. N phones, T frames, M mels."""

    normalized: str  # the text in words; empty for a pause
    phones: tuple[str, ...]  # phone and pause names, N of them
    durations: np.ndarray  # frames per phone, (N,) int64, their sum is T
    wav: np.ndarray  # (T * hop,) float32
    mel: np.ndarray  # log-mel, (M, T) float32
    f0: np.ndarray | None  # Hz, as the model predicted it, (T,) float32; None if it does not
    energy: np.ndarray | None  # as the model predicted it, (T,) float32; None if it does not
    attention: AttentionQuality | None = None  # of models that align by attention


@dataclass
class SpokenTimes:
    """Times in speech, from its start; they grow while it is spoken piece by piece."""

    words: list[TimedWord] = field(default_factory=list)
    sentences: list[TimedSentence] = field(default_factory=list)  # the last one may be unfinished
    marks: list[TimedMark] = field(default_factory=list)

    def add(
        self,
        passage: Passage,
        durations: np.ndarray,
        frame_s: float,
        start_frame: int,
        *,
        starts_sentence: bool,
    ) -> None:
        """Adds what is in a passage that starts at a frame; durations are in frames, (N,)."""
        edges = (start_frame + np.concatenate([[0], np.cumsum(durations)])) * frame_s  # (N + 1,)
        words = [
            TimedWord(word.text, float(edges[word.start]), float(edges[word.end]))
            for word in passage.spoken.words
        ]
        self.words += words
        starts = [word.start_s for word in words]
        ends = [*starts, words[-1].end_s if words else start_frame * frame_s]
        self.marks += (TimedMark(name, ends[before]) for name, before in passage.marks)
        if not words:  # a break
            return
        sentence = TimedSentence(passage.spoken.text, words[0].start_s, words[-1].end_s)
        if not starts_sentence:
            begun = self.sentences.pop()
            sentence = TimedSentence(f"{begun.text} {sentence.text}", begun.start_s, sentence.end_s)
        self.sentences.append(sentence)


class Fitted(NamedTuple):
    """Frames around and of a passage."""

    n_silent: int  # silence before it
    start: int  # of what is left of it
    end: int
    n_kept: int  # of the pauses at its end, that are part of the break after it
    durations: np.ndarray  # of the phones that are left, (N,)


@dataclass(frozen=True)
class Silence:
    """Silence between passages."""

    n_frames: int


@dataclass(frozen=True)
class Placed(Generic[T]):
    """The output of a passage, and how its edges are cut."""

    output: T
    passage: Passage
    fitted: Fitted


def place(
    sentences: Sequence[Sequence[Passage]],
    outputs: Iterable[tuple[T, np.ndarray]],
    times: SpokenTimes,
    frame_s: float,
    n_pause: int,
) -> Iterator[Silence | Placed[T]]:
    """Puts the outputs of passages and the silence around them in order.

    Args:
        outputs: For each passage with phones, its output and frames per phone, (N,).
        times: Gets the times of each passage before it is yielded.
        frame_s: Seconds per frame.
        n_pause: Frames of the pause between sentences.
    """
    waiting, start_frame, n_kept = iter(outputs), 0, 0
    passages = [(p, i == 0) for sentence in sentences for i, p in enumerate(sentence)]
    breaks_s = [*(passage.break_s for passage, _ in passages[1:]), None]
    for n, ((passage, starts), next_break_s) in enumerate(zip(passages, breaks_s, strict=True)):
        output, durations = None, np.zeros(0, dtype=np.int64)
        if passage.spoken.phones:
            output, durations = next(waiting)
        if passage.break_s is None:
            n_before = n_pause if starts and n > 0 else 0
        else:
            n_before = round(passage.break_s / frame_s) - n_kept
        n_after = None if next_break_s is None else round(next_break_s / frame_s)
        fitted = _fitted(passage, durations, n_before, n_after)
        n_kept = fitted.n_kept
        if fitted.n_silent > 0:
            yield Silence(fitted.n_silent)
        start_frame += fitted.n_silent
        times.add(passage, fitted.durations, frame_s, start_frame, starts_sentence=starts)
        if output is not None:
            yield Placed(output, passage, fitted)
        start_frame += int(fitted.durations.sum())


def _fitted(passage: Passage, durations: np.ndarray, n_before: int, n_after: int | None) -> Fitted:
    """Fits the pauses at both edges of a passage into breaks, as far as there is room for them.

    Durations are frames per phone, (N,); `n_before` frames of silence or of a break are before the
    passage, and a break of `n_after` frames follows it, if any.
    """
    phones, start, end, n_kept = passage.spoken.phones, 0, int(durations.sum()), 0
    if passage.break_s is not None:
        leading = _pause_frames(phones, durations)
        start = max(0, leading - n_before)
        n_before -= leading - start
    if n_after is not None:
        trailing = _pause_frames(phones[::-1], durations[::-1])
        n_kept = min(trailing, n_after)
        end -= trailing - n_kept
    edges = np.concatenate([[0], np.cumsum(durations)])  # (N + 1,)
    return Fitted(n_before, start, end, n_kept, np.diff(edges.clip(start, end)))


def _pause_frames(phones: Sequence[str], durations: np.ndarray) -> int:
    """Frames of the pauses before the first word."""
    n = sum(1 for _ in takewhile(PAUSES.__contains__, phones))
    return int(durations[:n].sum())


def cut_part(placed: Placed[Part], hop_length: int) -> Part:
    """The frames that are left of a part in its place."""
    part, (_, start, end, _, durations) = placed.output, placed.fitted
    return replace(
        part,
        durations=durations,
        wav=part.wav[start * hop_length : end * hop_length],
        mel=part.mel[:, start:end],
        f0=None if part.f0 is None else part.f0[start:end],
        energy=None if part.energy is None else part.energy[start:end],
    )


def cut_pieces(pieces: Iterable[np.ndarray], start: int, end: int) -> Iterator[np.ndarray]:
    """The samples from `start` to `end` of a wav that comes in pieces, (n,) each."""
    place = 0
    for piece in pieces:
        kept = piece[max(0, start - place) : max(0, end - place)]
        place += len(piece)
        if len(kept) > 0:
            yield kept


def amplified(
    pieces: Iterable[np.ndarray], gains: np.ndarray, hop_length: int
) -> Iterator[np.ndarray]:
    """Multiplies pieces of a wav, (n,), by gains of frames, (T,), interpolated between middles."""
    middles = (np.arange(len(gains)) + 0.5) * hop_length
    start = 0
    for piece in pieces:
        places = np.arange(start, start + len(piece))
        start += len(piece)
        yield (piece * np.interp(places, middles, gains)).astype(np.float32)


def silence(n_frames: int, mel: MelConfig) -> Part:
    """Builds a pause as a part: one phone, the mel at its floor, and no sound."""
    return Part(
        normalized="",
        phones=(SILENCE,),
        durations=np.array([n_frames], dtype=np.int64),
        wav=np.zeros(n_frames * mel.hop_length, dtype=np.float32),
        mel=np.full((mel.n_mels, n_frames), mel.log_floor_value, dtype=np.float32),
        f0=np.zeros(n_frames, dtype=np.float32),
        energy=np.zeros(n_frames, dtype=np.float32),
    )


def faded(wav: np.ndarray, sample_rate: int) -> np.ndarray:
    """Fades a wav in and out: half cosines over its first and last 5 ms."""
    return next(faded_pieces([wav], len(wav), sample_rate))


def faded_pieces(
    pieces: Iterable[np.ndarray], n_samples: int, sample_rate: int
) -> Iterator[np.ndarray]:
    """Fades a wav that comes in pieces, (n,) each, as `faded` does."""
    n = min(round(FADE_S * sample_rate), n_samples // 2)
    start = 0
    for piece in pieces:
        positions = np.arange(start, start + len(piece))
        from_edge = np.minimum(positions, n_samples - 1 - positions).clip(max=n)
        start += len(piece)
        gain = 0.5 - 0.5 * np.cos(np.pi * from_edge / max(n, 1)) if n > 0 else 1.0
        yield (piece * gain).astype(np.float32)


def faded_out(pieces: Iterable[np.ndarray], n_samples: int) -> Iterator[np.ndarray]:
    """Fades the last `n_samples` of a wav linearly from 1 to 0, all of a shorter one.

    It comes in pieces, (n,) each, of which the last are held back.
    """
    if n_samples == 0:
        yield from pieces
        return
    held, whole = np.zeros(0, dtype=np.float32), 0
    for piece in pieces:
        whole += len(piece)
        held = np.concatenate([held, piece])
        if len(held) > n_samples:
            yield held[:-n_samples]
            held = held[-n_samples:]
    if whole < n_samples:
        get_logger(__name__).warning(
            "the fade at the end is %.1f times as long as the speech, all of which fades; use a"
            " smaller --fade_out",
            n_samples / max(whole, 1),
        )
    yield (held * np.linspace(1, 0, len(held))).astype(np.float32)


def limiting_gain(peak: float) -> float:
    """Returns the factor that lowers the peak of a wav to `PEAK`; 1 if it is within [-1, 1]."""
    return PEAK / peak if peak > 1.0 else 1.0


def log_gain(gain: float) -> None:
    """Logs that a wav was multiplied by a gain of `limiting_gain`, if that is below 1."""
    if gain < 1:
        get_logger(__name__).info(
            "peak %.2f: scaled down by %.1f dB", PEAK / gain, -20 * math.log10(gain)
        )


def warn_if_silent(wav: np.ndarray) -> None:
    """Warns of speech that is hardly audible: its peak is 40 dB and more below full scale."""
    peak = float(np.abs(wav).max(initial=0.0))
    if peak < AUDIBLE_PEAK:
        get_logger(__name__).warning(
            "almost no sound: the peak is %.5f of full scale; is the model trained, and does the"
            " vocoder fit it?",
            peak,
        )


def warn_if_rushed(speech: Speech, slower: float) -> None:
    """Warns of phones too short for speech, as of a model after few updates.

    Args:
        slower: The factor on durations that was asked for.
    """
    spoken = [name not in PAUSES for name in speech.phone_names]
    seconds = float(speech.durations[spoken].sum()) * speech.frame_s
    if sum(spoken) * slower > MAX_PHONES_PER_S * seconds:
        get_logger(__name__).warning(
            "%d phones in %.2f s: the model is hardly trained; train it longer, or choose a later"
            " checkpoint",
            sum(spoken),
            seconds,
        )


def _joined(curves: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Curves of consecutive parts, (T,) each, as one; None if a part has none."""
    present = [curve for curve in curves if curve is not None]
    return np.concatenate(present) if len(present) == len(curves) else None


def join(
    parts: Sequence[Part],
    times: SpokenTimes,
    mel: MelConfig,
    *,
    text: str,
    speaker: str,
    out_of_vocabulary: Sequence[str] = (),
) -> Speech:
    """Joins parts in order; each fades at its ends, and the whole is scaled down if too loud."""
    wav = np.concatenate([faded(part.wav, mel.sample_rate) for part in parts])
    gain = limiting_gain(float(np.abs(wav).max(initial=0.0)))
    return Speech(
        text=text,
        normalized=" ".join(part.normalized for part in parts if part.normalized),
        speaker=speaker,
        wav=(wav * gain).astype(np.float32),
        sample_rate=mel.sample_rate,
        frame_s=mel.frame_s,
        words=tuple(times.words),
        sentences=tuple(times.sentences),
        phone_names=tuple(name for part in parts for name in part.phones),
        durations=np.concatenate([part.durations for part in parts]),
        mel=np.concatenate([part.mel for part in parts], axis=1),
        f0=_joined([part.f0 for part in parts]),
        energy=_joined([part.energy for part in parts]),
        attention=tuple(part.attention for part in parts if part.attention is not None),
        out_of_vocabulary=tuple(dict.fromkeys(out_of_vocabulary)),
        marks=tuple(times.marks),
        gain=gain,
    )
