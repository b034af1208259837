"""Synthesised speech: the record of a text; clauses joined, with breaks, times, fades, level."""

import base64
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

import numpy as np

from modules.alignment.attention_quality import AttentionQuality
from processors.audio.streams import FORMATS, write_audio
from processors.durations.subtitles import CharacterSpan, WrittenText
from processors.records import TimedMark, TimedPhone, TimedSentence, TimedWord, timed_phones
from processors.text.passages import Passage
from processors.text.symbols import BLANK, PAUSES
from utils.errors import InputError
from utils.logging import get_logger

ALIGNMENT_FORMATS = ("json", "srt", "textgrid", "vtt")  # that `Speech.save_alignment` writes
FADE_S = 0.005  # at both ends of a clause: an edge that is not at zero would click
AUDIBLE_PEAK = 0.01  # -40 dB; the softest recordings of corpora have peaks above 0.05
MAX_PHONES_PER_S = 40  # hurried speech has 20
PEAK = 0.99  # louder speech is scaled down to this, so that no sample is clipped


@dataclass(frozen=True, kw_only=True)
class Speech:
    """A synthesised text with its alignment. S samples, N phones, T frames, M mels."""

    text: str = ""  # as given
    normalized: str = ""  # the text in words, numbers and abbreviations spelt out
    speaker: str  # name of the speaker
    wav: np.ndarray  # (S,) float32 in [-1, 1], S = T * hop
    sample_rate: int  # Hz
    frame_s: float  # seconds per frame
    words: tuple[TimedWord, ...] = ()  # every word of the normalised text, in order, with times
    sentences: tuple[TimedSentence, ...] = ()  # of the text as given, in order, with times
    # phone and pause names, N of them; pauses between sentences are phones too
    phone_names: tuple[str, ...]
    durations: np.ndarray  # frames per phone, (N,) int64
    mel: np.ndarray  # log-mel, (M, T) float32
    # Hz, as the model predicted it, (T,) float32; 0 in the pauses between sentences. None, here and
    # below, if the model predicts none
    f0: np.ndarray | None
    energy: np.ndarray | None  # as the model predicted it, (T,) float32
    out_of_vocabulary: tuple[str, ...] = ()  # words that no lexicon holds, pronounced by rule
    attention: tuple[AttentionQuality, ...] = ()  # of each sentence, if the model has attention
    marks: tuple[TimedMark, ...] = ()  # of SSML, in order
    clauses: tuple[tuple[str, int], ...] = ()  # of the text as given, with their numbers of words
    tag: str = ""  # what its files say of their origin, of `synthetic_tag`; empty: nothing
    gain: float = 1.0  # what the wav was multiplied by to keep it within [-1, 1]; 1 for most

    @property
    def seconds(self) -> float:
        """Length of the wav."""
        return len(self.wav) / self.sample_rate

    @property
    def spans(self) -> tuple[CharacterSpan, ...]:
        """Characters of `text` that each word was read from, "$5" for "five dollars"."""
        written, words = WrittenText(self.text), iter(self.words)
        clauses = ((text, list(islice(words, n_words))) for text, n_words in self.clauses)
        return tuple(span for clause in clauses for span in written.spans(*clause))

    @property
    def phones(self) -> tuple[TimedPhone, ...]:
        """Phones and pauses with times; they cover the wav without gaps."""
        return timed_phones(self.phone_names, self.durations, self.frame_s)

    def save(self, path: str | Path) -> None:
        """Writes the wav, as 16-bit samples where the format has samples; makes the folder.

        The suffix decides the format, such as .wav, .flac, .ogg or .mp3. The file says that the
        speech is synthetic; that of `dataclasses.replace(speech, tag="")` does not.
        """
        if not isinstance(path, str | Path) or Path(path).suffix[1:].lower() not in FORMATS:
            raise InputError(
                f"{path}: unknown audio format; expected the path of a file that ends with one of"
                f" .{', .'.join(FORMATS)}"
            )
        write_audio(Path(path), [self.wav], self.sample_rate, self.tag)

    def save_alignment(self, path: str | Path) -> None:
        """Writes the times of words and sentences, in some formats also those of phones.

        The suffix decides the format: .json, .srt, .TextGrid or .vtt.
        """
        from processors.durations.writing import WRITERS, AlignedSpeech

        path = Path(path)
        format = path.suffix[1:].lower()
        if format not in ALIGNMENT_FORMATS:
            known = ", ".join(ALIGNMENT_FORMATS)
            raise InputError(f"{path}: unknown format of alignments; expected one of {known}")
        path.parent.mkdir(parents=True, exist_ok=True)
        speech = AlignedSpeech(
            id=path.stem,
            text=self.text,
            seconds=self.seconds,
            phones=self.phones,
            words=self.words,
            sentences=self.sentences,
            frames=self.durations,
            hop_length=round(self.frame_s * self.sample_rate),
            sample_rate=self.sample_rate,
            marks=self.marks,
            spans=self.spans,
        )
        WRITERS[format](path.parent, [speech])

    def _repr_html_(self) -> str:
        """Shows a player in a notebook."""
        import soundfile  # synthesis does not need it

        file = io.BytesIO()
        soundfile.write(file, self.wav, self.sample_rate, format="WAV")
        wav = base64.b64encode(file.getvalue()).decode()
        return f'<audio controls src="data:audio/wav;base64,{wav}"></audio>'


# What is spoken in one pass, or silence: all of it but its wav, and the pieces of that, (n,)
Clause = tuple[Speech, Iterable[np.ndarray]]


class SpeechStream(Iterator[np.ndarray]):
    """Pieces of a wav, (n,) float32 in [-1, 1], and the times of what is spoken so far."""

    def __init__(self, clauses: Iterable[Clause], n_faded: int, text: str | None = None) -> None:
        self.words: list[TimedWord] = []
        self._text = text
        self._written: WrittenText | None = None
        self._clauses: list[tuple[str, Sequence[TimedWord]]] = []  # to be found in the text
        self._spans: list[CharacterSpan] = []
        self.sentences: list[TimedSentence] = []
        self.marks: list[TimedMark] = []
        self._pieces = faded_out(self._clipped(clauses), n_faded)

    def __next__(self) -> np.ndarray:
        return next(self._pieces)

    @property
    def spans(self) -> list[CharacterSpan]:
        """Characters of the text that each of `words` was read from; none of SSML and iterators."""
        clauses, self._clauses = self._clauses, []
        if self._text is not None:
            written = self._written = self._written or WrittenText(self._text)
            self._spans += [span for clause in clauses for span in written.spans(*clause)]
        return self._spans

    def _clipped(self, clauses: Iterable[Clause]) -> Iterator[np.ndarray]:
        for clause, pieces in clauses:
            self.words += clause.words
            self._clauses.append((clause.text, clause.words))
            self.sentences += clause.sentences
            self.marks += clause.marks
            for piece in pieces:
                yield piece.clip(-1, 1)


def arrange(
    passages: Sequence[Passage],
    clauses: Iterator[Clause],
    silence: Callable[[int], Clause],
    n_pause: int,
    n_before: int = 0,
) -> Iterator[Clause]:
    """Puts clauses and the silence around them in order, with their times.

    Args:
        clauses: Those of the passages with phones.
        silence: Makes silence of a number of frames.
        n_pause: Frames of the pause between sentences.
        n_before: Frames of the speech before the passages.
    """
    with_words = [n for n, passage in enumerate(passages) if passage.spoken.words]
    ends_sentence = {
        n: following is None or passages[following].starts_sentence
        for n, following in zip(with_words, [*with_words[1:], None], strict=False)
    }
    frame, n_in_break = n_before, 0  # before the passage, and of pauses in the break before it
    begun: TimedSentence | None = None  # goes on in the passage
    for n, passage in enumerate(passages):
        clause, pieces = next(clauses) if passage.spoken.phones else silence(0)
        phones, durations, frame_s = clause.phone_names, clause.durations, clause.frame_s
        start, end = 0, int(durations.sum())
        n_silent = n_pause if passage.starts_sentence and n + n_before > 0 else 0
        if passage.break_s is not None:  # the pauses at both its edges are part of a break
            n_silent = round(passage.break_s / frame_s) - n_in_break
            n_leading = _pause_frames(phones, durations)
            start = max(0, n_leading - n_silent)
            n_silent -= n_leading - start
        n_in_break = 0
        if n + 1 < len(passages) and (break_s := passages[n + 1].break_s) is not None:
            n_trailing = _pause_frames(phones[::-1], durations[::-1])
            n_in_break = min(n_trailing, round(break_s / frame_s))
            end -= n_trailing - n_in_break
        if n_silent > 0:
            yield silence(n_silent)
            frame += n_silent
        clause = _placed(clause, passage, start, end, frame)
        frame += end - start
        if clause.words:
            text, start_s = passage.spoken.text, clause.words[0].start_s
            if begun is not None:
                text, start_s = f"{begun.text} {text}", begun.start_s
            begun = TimedSentence(text, start_s, clause.words[-1].end_s)
            if ends_sentence[n]:
                clause, begun = replace(clause, sentences=(begun,)), None
        hop_length = round(frame_s * clause.sample_rate)
        if passage.prosody:
            gains = np.repeat([phone.gain for phone in passage.prosody], durations)  # of frames
            middles = (np.arange(len(gains)) + 0.5) * hop_length
            pieces = scaled(pieces, partial(np.interp, xp=middles, fp=gains))
        pieces = cut_pieces(pieces, start * hop_length, end * hop_length)
        yield clause, faded_pieces(pieces, (end - start) * hop_length, clause.sample_rate)


def _pause_frames(phones: Sequence[str], durations: np.ndarray) -> int:
    """Counts the frames of the pauses before the first word."""
    n = sum(1 for _ in takewhile(PAUSES.__contains__, phones))
    return int(durations[:n].sum())


def _placed(clause: Speech, passage: Passage, start: int, end: int, first_frame: int) -> Speech:
    """Keeps the frames from `start` to `end`; adds words and marks, from a frame of the text on."""
    edges = np.concatenate([[0], np.cumsum(clause.durations)]).clip(start, end)  # (N + 1,)
    edges_s = (first_frame + edges - start) * clause.frame_s
    words = [
        TimedWord(word.text, float(edges_s[word.start]), float(edges_s[word.end]))
        for word in passage.spoken.words
    ]
    end_s = words[-1].end_s if words else first_frame * clause.frame_s
    reached_s = [*(word.start_s for word in words), end_s]
    return replace(
        clause,
        words=tuple(words),
        marks=tuple(TimedMark(name, reached_s[n_words]) for name, n_words in passage.marks),
        durations=np.diff(edges),
        mel=clause.mel[:, start:end],
        f0=None if clause.f0 is None else clause.f0[start:end],
        energy=None if clause.energy is None else clause.energy[start:end],
    )


def cut_pieces(pieces: Iterable[np.ndarray], start: int, end: int) -> Iterator[np.ndarray]:
    """Yields the samples from `start` to `end` of a wav that comes in pieces, (n,) each."""
    position = 0
    for piece in pieces:
        part = piece[max(0, start - position) : max(0, end - position)]
        position += len(piece)
        if len(part) > 0:
            yield part


def scaled(
    pieces: Iterable[np.ndarray], gains_at: Callable[[np.ndarray], np.ndarray | float]
) -> Iterator[np.ndarray]:
    """Multiplies a wav, which comes in pieces, (n,) each, by gains at the places of samples."""
    start = 0
    for piece in pieces:
        gains = gains_at(np.arange(start, start + len(piece)))
        start += len(piece)
        yield (piece * gains).astype(np.float32)


def faded_pieces(
    pieces: Iterable[np.ndarray], n_samples: int, sample_rate: int
) -> Iterator[np.ndarray]:
    """Fades both ends of a wav, which comes in pieces, (n,) each, by half cosines of 5 ms."""
    n = min(round(FADE_S * sample_rate), n_samples // 2)

    def gains_at(positions: np.ndarray) -> np.ndarray | float:
        from_edge = np.minimum(positions, n_samples - 1 - positions).clip(max=n)
        return 0.5 - 0.5 * np.cos(np.pi * from_edge / n) if n > 0 else 1.0

    return scaled(pieces, gains_at)


def faded_out(pieces: Iterable[np.ndarray], n_samples: int) -> Iterator[np.ndarray]:
    """Fades the last `n_samples` of a wav linearly from 1 to 0, all of a shorter one.

    It comes in pieces, (n,) each, of which the last are held back.
    """
    if n_samples == 0:
        yield from pieces
        return
    tail = np.zeros(0, dtype=np.float32)
    for piece in pieces:
        tail = np.concatenate([tail, piece])
        if len(tail) > n_samples:
            yield tail[:-n_samples]
            tail = tail[-n_samples:]
    if len(tail) < n_samples:
        get_logger(__name__).warning(
            "the fade at the end is %.1f times as long as the speech, all of which fades; use a"
            " smaller --fade_out",
            n_samples / max(len(tail), 1),
        )
    yield (tail * np.linspace(1, 0, len(tail))).astype(np.float32)


def limiting_gain(peak: float) -> float:
    """Returns and logs the factor that lowers a peak beyond full scale to `PEAK`; else 1."""
    if peak <= 1:
        return 1.0
    reduction_db = 20 * math.log10(peak / PEAK)
    get_logger(__name__).info("peak %.2f: scaled down by %.1f dB", peak, reduction_db)
    return PEAK / peak


def warn_if_untrained(speech: Speech, slower: float) -> None:
    """Warns of speech as of a model after few updates: without sound, or with hurried phones.

    `slower` is the factor on durations that was asked for.
    """
    peak = float(np.abs(speech.wav).max(initial=0.0))
    if peak < AUDIBLE_PEAK:
        get_logger(__name__).warning(
            "almost no sound: the peak is %.5f of full scale; is the model trained, and does the"
            " vocoder fit it?",
            peak,
        )
    n_spoken = sum(name not in PAUSES for name in speech.phone_names)
    lasting = [name not in PAUSES or name == BLANK for name in speech.phone_names]
    seconds = float(speech.durations[lasting].sum()) * speech.frame_s
    if n_spoken * slower > MAX_PHONES_PER_S * seconds:
        get_logger(__name__).warning(
            "%d phones in %.2f s: the model is hardly trained; train it longer, or choose a later"
            " checkpoint",
            n_spoken,
            seconds,
        )


def join(clauses: Sequence[Speech], wavs: Sequence[np.ndarray]) -> Speech:
    """Joins the clauses of a text and their wavs, (n,) each; scales the whole down if too loud."""
    wav = np.concatenate(wavs)
    gain = limiting_gain(float(np.abs(wav).max(initial=0.0)))
    sentences = tuple(sentence for clause in clauses for sentence in clause.sentences)
    unknown = (word for clause in clauses for word in clause.out_of_vocabulary)
    return replace(
        clauses[0],
        text=" ".join(sentence.text for sentence in sentences),
        normalized=" ".join(clause.normalized for clause in clauses if clause.normalized),
        wav=(wav * gain).astype(np.float32),
        words=tuple(word for clause in clauses for word in clause.words),
        sentences=sentences,
        phone_names=tuple(name for clause in clauses for name in clause.phone_names),
        durations=np.concatenate([clause.durations for clause in clauses]),
        mel=np.concatenate([clause.mel for clause in clauses], axis=1),
        f0=_joined([clause.f0 for clause in clauses]),
        energy=_joined([clause.energy for clause in clauses]),
        out_of_vocabulary=tuple(dict.fromkeys(unknown)),
        attention=tuple(quality for clause in clauses for quality in clause.attention),
        marks=tuple(mark for clause in clauses for mark in clause.marks),
        gain=gain,
    )


def _joined(curves: Sequence[np.ndarray | None]) -> np.ndarray | None:
    present = [curve for curve in curves if curve is not None]
    return np.concatenate(present) if len(present) == len(curves) else None
