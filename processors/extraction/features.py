"""What stage 1 extracts.

For acoustic models phones, durations, mel, f0, energy, and statistics of them; for vocoders whole
recordings and their mels, without text, alignment and pitch.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from config.preprocess import PreprocessConfig
from config.schema import Config
from modules.mel import MelConfig, MelSpectrogram
from preprocessors.corpora import portable_path
from preprocessors.manifest import Splits, Utterance
from processors.alignment.aligner import find_aligner, make_aligner
from processors.alignment.fit import check_fit
from processors.audio.frames import mel_of, to_pcm16
from processors.audio.pitch import extract_f0, require_extractor
from processors.dataset.statistics import corpus_stats
from processors.dataset.store import FeatureStore, processed_folder
from processors.extraction import shards
from processors.extraction.fingerprint import DATASET_PATH, IGNORED, Dependence, lexicon_digest
from processors.extraction.plan import DatasetRun, list_corpus, plan_run
from processors.records import Alignment, Features, MelWav
from utils.errors import InputError, UtteranceError
from utils.files import size_and_time, write_json, write_text
from utils.logging import get_logger

_log = get_logger(__name__)

TTS_OUTPUTS = ("phones.json", "oov.txt", "stats.json")  # of acoustic models, besides the store
_UNKNOWN_SHARE = 0.1  # above: another phone set; the rare phones of 55 clips are 0.05 %


class FeatureError(UtteranceError):
    """An utterance whose parts do not fit together; the message says how."""


def plan_tts(config: Config, dataset: str) -> DatasetRun:
    """Plans stage 1 of an acoustic model; raises InputError if corpus or config cannot be used."""
    options = config.preprocess
    root, listing = list_corpus(config, dataset)
    if not any(utterance.text for utterance in listing.utterances):
        fault = f"{dataset}: its recordings have no text, and an acoustic model needs it"
        key = f"preprocess.corpus.{dataset}.format"
        raise InputError(f"{fault}; give {key} a format with texts, such as folder")
    folder = processed_folder(options, dataset)
    dependence = feature_dependence(options, root)
    plan_training = find_aligner(options).plan_training
    training = plan_training and plan_training(options, listing.utterances, folder)
    if training:
        dependence = dependence._replace(other={**dependence.other, **training.identity})
    make_extractor = partial(FeatureExtractor, options, root, folder)
    work = shards.ShardWork(make_extractor, folder, options.mel, dependence.other)
    run = plan_run(options, dataset, listing, dependence, work)
    if not training:
        return replace(run, check=lambda: make_extractor().reader.prepare(listing.utterances))
    check = partial(shards.UtteranceReader(options).prepare, listing.utterances)
    return replace(run, check=check, prepare=training.carry_out)


def feature_dependence(config: PreprocessConfig, dataset_root: Path) -> Dependence:
    """Lists what features depend on, for the fingerprint."""
    find_files = find_aligner(config).files
    alignment_of = find_files and find_files(config, dataset_root)

    def identity(utterance: Utterance) -> list[object]:
        words = [utterance.id, utterance.spoken, utterance.speaker, utterance.language]
        of_alignment = size_and_time(alignment_of(utterance)) if alignment_of else ()
        return [*words, *size_and_time(utterance.audio), *of_alignment]

    corpus = {DATASET_PATH: portable_path(dataset_root)}
    return Dependence("tts", IGNORED["tts"], identity, lexicon_digest(config), corpus)


class FeatureExtractor:
    """Extracts features of utterances; built once per process, since that takes seconds."""

    def __init__(self, config: PreprocessConfig, dataset_root: Path, folder: Path = Path()) -> None:
        if config.pitch_extractor != "imported":
            require_extractor(config.pitch_extractor)
        self.config = config
        self.mel = MelSpectrogram(config.mel)
        self.align = make_aligner(config, dataset_root, folder)
        self.reader = shards.UtteranceReader(config)

    def __call__(self, utterance: Utterance, trace: shards.Trace) -> Features:
        """Extracts everything from one utterance.

        The audio is cut to the aligned span, and that to whole frames: phones are rounded to frames
        at their boundaries, so that errors do not add up; where the recording ends up to a frame
        too early, it is continued by reflection.

        Raises:
            UtteranceError: If the recording cannot be used or is too short for an analysis window,
                or cannot be aligned with its text, or that fits worse than `max_misfit`, or the
                alignment ends more than a frame after the recording.
            InputError: If the text has no pronunciation.
        """
        wav, spoken = self.reader.read(utterance, trace)
        trace.part = "alignment"
        alignment = self.align(utterance, wav, spoken)
        if alignment.score is not None:
            trace.score = alignment.score
            check_fit(alignment.score, self.config.max_misfit)
        trace.part = "features"
        features = self._analyse(utterance, alignment, wav)
        trace.notices = (*trace.notices, *alignment.notices)
        trace.phones, trace.text_phones = features.phones, spoken.phones
        trace.out_of_vocabulary = spoken.out_of_vocabulary
        return replace(features, word_phones=spoken.word_phones)

    def _analyse(
        self, utterance: Utterance, alignment: Alignment, recording: np.ndarray
    ) -> Features:
        """Returns mel, energy and f0 of the aligned span of a recording, (S,)."""
        mel_config = self.mel.config
        durations = frame_durations(alignment.boundaries_s, mel_config)  # (N,), or (1,): T
        start = round(float(alignment.boundaries_s[0]) * mel_config.sample_rate)
        wav = cut_aligned(recording, start, int(durations.sum()), mel_config)
        samples = torch.from_numpy(wav)[None]  # (1, S)
        with torch.inference_mode():
            mel_and_energy = self.mel.mel_and_energy(samples)  # (1, M, T), (1, T)
        mel, energy = (values[0].numpy() for values in mel_and_energy)
        if self.config.pitch_extractor != "imported":
            n_frames, method = int(durations.sum()), self.config.pitch_extractor
            limits = {"f0_min": self.config.f0_min, "f0_max": self.config.f0_max}
            f0 = extract_f0(wav, mel_config, n_frames, method=method, **limits)
        elif alignment.f0_hz is not None:
            f0 = np.repeat(alignment.f0_hz, durations).astype(np.float32)
        else:
            fault = "preprocess.pitch_extractor is imported; its imported alignment has no pitch"
            raise FeatureError(f"{fault}; import it again with --pitch, or set another extractor")
        id, speaker, phones = utterance.id, utterance.speaker, alignment.phones
        timed = durations if alignment.has_times else None
        return Features(id, speaker, phones, timed, mel, f0, energy, start)


def frame_durations(boundaries_s: np.ndarray, mel: MelConfig) -> np.ndarray:
    """Returns frames of each phone, (N,) int64, from N + 1 boundaries.

    Boundaries are rounded, not durations: each lies within half a frame of its place, however long
    the utterance.
    """
    frames = (boundaries_s - boundaries_s[:1]) * mel.sample_rate / mel.hop_length
    durations = np.diff(np.floor(frames + 0.5).astype(np.int64))
    if durations.size == 0 or durations.min() < 0 or boundaries_s[0] < 0:
        raise FeatureError("the alignment has no phones or goes backwards; correct or remove it")
    return durations


def cut_aligned(wav: np.ndarray, start: int, n_frames: int, mel: MelConfig) -> np.ndarray:
    """Cuts the aligned span from sample `start` on out of a recording, (S,) -> (n_frames * hop,).

    Rounding can take an alignment up to one hop beyond its recording, which is then reflected;
    `cut_span` also allows for the shift between two mel definitions.
    """
    n_samples = n_frames * mel.hop_length
    if n_samples < mel.n_fft:
        fault = f"only {n_frames} frames ({n_samples} samples) are speech"
        window = f"less than one analysis window of {mel.n_fft} samples"
        raise FeatureError(f"{fault}, {window}; does this recording match its text?")
    span = wav[start : start + n_samples]
    missing = n_samples - len(span)
    if missing > mel.hop_length:
        n_recorded = len(span) // mel.hop_length
        fault = f"the alignment lasts {n_frames} frames, the recording {n_recorded}"
        raise FeatureError(f"{fault}; align this recording again")
    return np.ascontiguousarray(np.pad(span, (0, missing), mode="reflect"), dtype=np.float32)


def check_phones(run: DatasetRun, total: shards.ShardReport) -> None:
    """Writes phones and out-of-vocabulary words; compares phones of texts and of alignments."""
    write_json(run.folder / "phones.json", dict(sorted(total.phones.items())))
    words = (f"{word}\t{n}\n" for word, n in shards.most_common(total.out_of_vocabulary))
    write_text(run.folder / "oov.txt", "".join(words))
    unknown = {name: n for name, n in total.text_phones.items() if name not in total.phones}
    if not unknown:
        return
    share = sum(unknown.values()) / total.text_phones.total()
    listed = ", ".join(f"{name} ({n})" for name, n in shards.most_common(unknown))
    fault = f"{run.dataset}: {100 * share:.2g} % of the phones of its texts are in no alignment"
    if share > _UNKNOWN_SHARE:
        key = f"preprocess.text.phone_extractor ({run.config.text.phone_extractor})"
        remedy = f"set {key} to that of the aligner, or preprocess.text.lexicon_path to its lexicon"
        raise InputError(f"{fault}: {listed}; {remedy}")
    _log.warning("%s, so that a model cannot pronounce them: %s", fault, listed)


def write_statistics(run: DatasetRun, splits: Splits) -> None:
    """Writes statistics of pitch and energy over the training split, from the finished store."""
    stats = corpus_stats(FeatureStore(run.folder, run.config.mel), splits.train, run.config)
    write_json(run.folder / "stats.json", stats.to_plain())


def plan_vocoder(config: Config, dataset: str) -> DatasetRun:
    """Plans stage 1 of a vocoder; raises InputError if the corpus or the config cannot be used."""
    options = config.preprocess
    root, listing = list_corpus(config, dataset)
    corpus = {DATASET_PATH: portable_path(root)}

    def identity(utterance: Utterance) -> list[object]:
        return [utterance.id, utterance.speaker, *size_and_time(utterance.audio)]

    dependence = Dependence("vocoder", IGNORED["vocoder"], identity, {}, corpus)
    make_extractor = partial(mel_wav_extractor, options)
    work = shards.ShardWork(make_extractor, processed_folder(options, dataset), options.mel)
    return plan_run(options, dataset, listing, dependence, work)


def mel_wav_extractor(config: PreprocessConfig) -> Callable[[Utterance, shards.Trace], MelWav]:
    """Returns an extractor of mels of whole recordings, cut to whole frames at their end."""
    spectrogram = MelSpectrogram(config.mel)

    def extract(utterance: Utterance, trace: shards.Trace) -> MelWav:
        wav = shards.read_recording(utterance, config, trace)
        trace.part = "features"
        wav = wav[: len(wav) // config.hop_length * config.hop_length]
        return MelWav(utterance.id, utterance.speaker, mel_of(wav, spectrogram), to_pcm16(wav))

    return extract
