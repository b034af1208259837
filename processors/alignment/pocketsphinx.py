"""The aligner "pocketsphinx", for English: the acoustic model of Huggins-Daines et al. 2006.

The model is part of the `pocketsphinx` package, so nothing is downloaded. It aligns exactly the
phones of the text frontend; its own dictionary is not used. Silences between words are optional.

The package crashes the process when a word or phone of an alignment is used after the alignment
is freed, so those are copied in one expression; and when words are added without updating.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soxr

from config.preprocess import PreprocessConfig
from config.text import is_english
from preprocessors.manifest import Utterance
from processors.alignment import aligner
from processors.alignment.aligner import Align, Aligner, AlignmentError
from processors.records import Alignment, SpokenText, TimedPhone
from processors.text.symbols import CONSONANTS, VOWELS
from utils.errors import InputError

MODEL_RATE = 16000  # Hz
FRAME_S = 0.01
# Phones are found this much too early, for every speaker, measured against MFA on LJ Speech; 8 ms
# of it come from counting a frame from the start of its window of 25.6 ms.
LEAD_S = 0.02
SHORTEST_PHONE_S = 3 * FRAME_S  # the model's phones have three states
_SILENCE_PROBABILITY = 0.5  # between words; the package's 0.005 misses one pause of 0.1 s in six
BEAMS = (1e-48, 1e-150)  # the package's default, and one for recordings at which it fails

# A wrong text of equal length has 0.4 of its phones at the minimum length (median), the right one
# 0.1, and in 1,200 recordings at most 0.34.
MAX_SHORTEST_SHARE = 0.4
_FEWEST_PHONES = 20  # for that check

_PHONES = frozenset((*VOWELS, *CONSONANTS))
Phones = tuple[str, ...]


class PhoneSpan(NamedTuple):
    """A phone in frames of the model."""

    phone: str  # without stress
    start: int  # first frame
    n_frames: int


def align_english(
    config: PreprocessConfig, utterance: Utterance, wav: np.ndarray, spoken: SpokenText
) -> Alignment:
    """Aligns one utterance in ARPAbet; the wav is (S,) float32 in [-1, 1] at the configured rate.

    Raises:
        AlignmentError: If it is not English, or the recording does not fit the text.
    """
    if not is_english(utterance.language):
        fault = f"the aligner pocketsphinx knows English, not {utterance.language}"
        raise AlignmentError(f"{fault}; set preprocess.aligner to hmm")
    words = [spoken.phones[word.start : word.end] for word in spoken.words]
    rate = config.sample_rate
    duration_s, n_phones = len(wav) / rate, sum(map(len, words))
    aligner.check_length(n_phones, SHORTEST_PHONE_S, duration_s)
    if rate != MODEL_RATE:
        wav = soxr.resample(wav, rate, MODEL_RATE)  # another (S,)
    pcm = (np.clip(wav, -1, 1) * 32767).astype("<i2").tobytes()
    spans_by_word = _align([_without_stress(word) for word in words], pcm)
    shortest = sum(s.n_frames * FRAME_S <= SHORTEST_PHONE_S for word in spans_by_word for s in word)
    if n_phones >= _FEWEST_PHONES and shortest > MAX_SHORTEST_SHARE * n_phones:
        least = f"the minimum length of {SHORTEST_PHONE_S:.2f} s"
        fault = f"{shortest} of {n_phones} phones have {least}"
        remedy = "does the recording match its text?"
        raise AlignmentError(f"text and recording do not fit: {fault}; {remedy}")
    spans = chain.from_iterable(spans_by_word)
    timed = [[_timed(phone, next(spans), duration_s) for phone in word] for word in words]
    return aligner.merge(aligner.aligned_words(spoken, timed), duration_s, config.edge_silence_s)


def _without_stress(phones: Sequence[str]) -> Phones:
    bare = tuple(phone.rstrip("012") for phone in phones)
    if unknown := [phone for phone, name in zip(phones, bare, strict=True) if name not in _PHONES]:
        fault = f"the aligner pocketsphinx does not know the phone {unknown[0]}"
        taken = "ARPAbet (preprocess.text.phone_extractor lexicon)"
        raise AlignmentError(f"{fault}; it takes {taken}, other phones need aligner textgrid")
    return bare


def _timed(phone: str, span: PhoneSpan, duration_s: float) -> TimedPhone:
    """Returns a phone with its stress, in seconds and without the lead."""
    start_s = span.start * FRAME_S + LEAD_S if span.start else 0.0
    end_s = (span.start + span.n_frames) * FRAME_S + LEAD_S
    return TimedPhone(phone, start_s, min(end_s, duration_s))


def _align(words: Sequence[Phones], pcm: bytes) -> list[list[PhoneSpan]]:
    """Returns the phones of each word; tries again with a wide beam if the first fails."""
    reason = ""
    for beam in BEAMS:
        try:
            return _recogniser(beam).align(words, pcm)
        except RuntimeError as error:  # all that the package ever raises
            reason = str(error)
            _recogniser.cache_clear()  # a decoder that failed is left in an unknown state
    raise AlignmentError(f"text and recording do not fit: pocketsphinx found no path ({reason})")


class _Recogniser:
    """A decoder and its vocabulary: each pronunciation is a word, named by its phones."""

    def __init__(self, beam: float) -> None:
        try:
            from pocketsphinx import Config, Decoder
        except ImportError:
            fault = "preprocess.aligner pocketsphinx needs the package pocketsphinx"
            raise InputError(f"{fault}: pip install pocketsphinx") from None
        config = Config(
            samprate=MODEL_RATE,
            loglevel="FATAL",
            lm=None,
            dict=None,
            silprob=_SILENCE_PROBABILITY,
            bestpath=False,  # it shortens some words to one frame, and the second pass then fails
            beam=beam,
            wbeam=beam,
            pbeam=beam,
        )
        self._decoder = Decoder(config)
        self._added: set[Phones] = set()

    def align(self, words: Sequence[Phones], pcm: bytes) -> list[list[PhoneSpan]]:
        """Finds words in 16-bit samples, and the phones in them; RuntimeError without a path."""
        for phones in words:
            if phones not in self._added:
                self._decoder.add_word("_".join(phones), " ".join(phones), True)
                self._added.add(phones)
        self._decoder.set_align_text(" ".join(map("_".join, words)))
        self._run(pcm)
        self._decoder.set_alignment()
        self._run(pcm)
        spans = [
            (word.name, [PhoneSpan(phone.name, phone.start, phone.duration) for phone in word])
            for word in self._decoder.get_alignment()
        ]
        spoken = [phones for name, phones in spans if not name.startswith(("<", "["))]  # no silence
        if [tuple(span.phone for span in phones) for phones in spoken] != list(words):
            raise RuntimeError("its phones differ from those of the text")
        return spoken

    def _run(self, pcm: bytes) -> None:
        self._decoder.reinit_feat()  # or times depend on the utterance before
        self._decoder.start_utt()
        self._decoder.process_raw(pcm, full_utt=True)
        self._decoder.end_utt()


# one per process: building it costs as much as aligning 3 s of audio
_recogniser = lru_cache(maxsize=len(BEAMS))(_Recogniser)


def _make(config: PreprocessConfig, dataset_root: Path, folder: Path) -> Align:
    if config.text.phone_extractor != "lexicon":
        remedy = "set preprocess.text.phone_extractor to lexicon, or preprocess.aligner to hmm"
        raise InputError(f"preprocess.aligner pocketsphinx knows English in ARPAbet only; {remedy}")
    _recogniser(BEAMS[0])  # a missing package is reported once, not for every utterance
    return partial(align_english, config)


ALIGNER = Aligner(make=_make)
