"""Synthesised speech as a record: its sound, times, phones and mel."""

import base64
import io
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from modules.alignment.attention_quality import AttentionQuality
from processors.audio.streams import FORMATS, write_audio
from processors.durations.subtitles import CharacterSpan, WrittenText
from processors.records import TimedMark, TimedPhone, TimedSentence, TimedWord, timed_phones
from utils.errors import InputError

ALIGNMENT_FORMATS = ("json", "srt", "textgrid", "vtt")  # that `Speech.save_alignment` writes


@dataclass(frozen=True)
class Speech:
    """A synthesised text with its alignment. S samples, N phones, T frames, M mels."""

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
        path = Path(path) if isinstance(path, str | Path) else path
        if not isinstance(path, Path) or path.suffix[1:].lower() not in FORMATS:
            raise InputError(
                f"{path}: unknown audio format; expected the path of a file that ends with one of"
                f" .{', .'.join(FORMATS)}"
            )
        write_audio(path, [self.wav], self.sample_rate, self.tag)

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
