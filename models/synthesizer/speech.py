"""Synthesised speech as a record, and the joining of its parts. Plain NumPy."""

import base64
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from models.synthesizer.timing import Fitted, SpokenTimes
from modules.alignment.attention_quality import AttentionQuality
from modules.mel import MelConfig
from processors.audio.streams import FORMATS, write_audio
from processors.records import TimedMark, TimedPhone, TimedSentence, TimedWord, timed_phones
from processors.text.symbols import PAUSES, SILENCE
from utils.errors import InputError
from utils.logging import get_logger

ALIGNMENT_FORMATS = ("json", "srt", "textgrid", "vtt")  # that `Speech.save_alignment` writes
FADE_S = 0.005  # at both ends of a part: an edge that is not at zero would click
AUDIBLE_PEAK = 0.01  # -40 dB; the softest recordings of corpora have peaks above 0.05
MOST_PHONES_PER_S = 40  # hurried speech has 20
PEAK = 0.99  # louder speech is scaled down to this, so that no sample is clipped


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


@dataclass(frozen=True)
class Speech:
    """A synthesised text with its alignment. S samples, and N, T, M as in `Part`."""

    text: str  # as given
    normalized: str  # the text in words, numbers and abbreviations spelt out
    speaker: str  # name of the speaker
    wav: np.ndarray  # (S,) float32 in [-1, 1], S = T * hop
    sample_rate: int  # Hz
    frame_s: float  # seconds per frame
    words: tuple[TimedWord, ...]  # every word of the normalised text, in order, with times
    sentences: tuple[TimedSentence, ...]  # of the text as given, in order, with times
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
    gain: float = 1.0  # what the wav was multiplied by to keep it within [-1, 1]; 1 for most

    @property
    def seconds(self) -> float:
        """Length of the wav."""
        return len(self.wav) / self.sample_rate

    @property
    def phones(self) -> tuple[TimedPhone, ...]:
        """Phones and pauses with times; they cover the wav without gaps."""
        return timed_phones(self.phone_names, self.durations, self.frame_s)

    def save(self, path: str | Path) -> None:
        """Writes the wav, as 16-bit samples where the format has samples; makes the folder.

        The suffix decides the format, such as .wav, .flac, .ogg or .mp3.
        """
        path = Path(path) if isinstance(path, str | Path) else path
        if not isinstance(path, Path) or path.suffix[1:].lower() not in FORMATS:
            raise InputError(
                f"{path}: unknown audio format; expected the path of a file that ends with one of"
                f" .{', .'.join(FORMATS)}"
            )
        write_audio(path, [self.wav], self.sample_rate)

    def save_alignment(self, path: str | Path) -> None:
        """Writes the times of words and sentences, in some formats also those of phones.

        The suffix decides the format: .json, .srt (and `.words.srt` by words), .TextGrid or .vtt.
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
        )
        WRITERS[format](path.parent, [speech])

    def _repr_html_(self) -> str:
        """Shows a player in a notebook."""
        import soundfile  # synthesis does not need it

        file = io.BytesIO()
        soundfile.write(file, self.wav, self.sample_rate, format="WAV")
        wav = base64.b64encode(file.getvalue()).decode()
        return f'<audio controls src="data:audio/wav;base64,{wav}"></audio>'


def cut_part(part: Part, fitted: Fitted, hop_length: int) -> Part:
    """Leaves out frames at the edges of a part."""
    start, end = fitted.n_cut_start, part.mel.shape[1] - fitted.n_cut_end
    return replace(
        part,
        durations=fitted.durations,
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
    if sum(spoken) * slower > MOST_PHONES_PER_S * seconds:
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
