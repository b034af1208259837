"""Metrics of one signal: error rates of a speech recogniser, and predicted mean opinion scores.

docs/evaluation.md#metrics has what they react to, and what was measured.

**Error rates** are in percent of the words or characters of the text: substitutions, deletions and
insertions; more than 100 is possible. The mean over utterances weights them by their words or
characters. jiwer counts them in lower-case text without punctuation, with English numbers and
abbreviations spelt out.

**DNSMOS P.835** (Reddy et al. 2022, arXiv:2110.01763): the overall score of the package `speechmos`
(model `sig_bak_ovr`, 16 kHz), the mean over windows of 9 s, one second apart. Shorter signals are
repeated to fill one window; the package repeats them further and averages more windows (a
difference of 0.04). The same clip 12 dB lower scores up to 0.15 better or worse.

**DistillMOS** (Stahl and Gamper 2025, arXiv:2502.05356): the score of the package `distillmos` (its
wheel has the weights), the mean over windows of 7.68 s at 16 kHz, at most 1 s apart, each scaled to
the same peak; shorter signals are padded with zeros. White noise at -40 dB costs 0.5, at -20 dB
1.4, a band of 4 kHz 0.5, a click of full scale 0.1.
"""

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.metrics.records import Metric, MetricValue
from utils.imports import without_modules
from utils.parallel import torch_threads

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech

_PACKAGES = ("jiwer", "pocketsphinx", "soxr")
NEEDS = "a text (--texts) in English, or in the language of your recogniser or transcripts"
MODEL_RATE = 16000  # Hz
SHORTEST_S = 0.5  # in shorter signals the repetition dominates
SHORTEST_DISTILLED_S = 1.0  # in shorter signals the zeros dominate
_WINDOW = int(9.01 * MODEL_RATE)  # input of the model, samples
_SILENT_PEAK = 1e-4  # -80 dB: digital silence scores higher than noise


def score_words(speech: "LabelledSpeech") -> MetricValue | None:
    """Computes the word error rate of a speech recogniser, with its hypothesis as the note."""
    from jiwer import wer

    return _error_rate(speech, wer, len(speech.words.split()))


def score_characters(speech: "LabelledSpeech") -> MetricValue | None:
    """Computes the character error rate of a speech recogniser, spaces between words included.

    A wrong ending costs less here than a missing word, which `wer` counts alike; languages written
    without spaces need this metric.
    """
    from jiwer import cer

    return _error_rate(speech, cer, len(speech.words))


def _error_rate(speech: "LabelledSpeech", error: Callable[..., Any], n: int) -> MetricValue | None:
    """Returns percent, the hypothesis as the note; None without a text or a recogniser of it."""
    if not n or (hypothesis := speech.recognised_words) is None:
        return None
    return MetricValue(100 * float(error(speech.words, hypothesis)), n, hypothesis)


def score_dnsmos(speech: "LabelledSpeech") -> MetricValue | None:
    """Predicts the mean opinion score of noisy speech, 1 to 5."""
    if not _is_audible(speech, SHORTEST_S):
        return None
    opinion = opinions(speech.wav, speech.sample_rate)
    note = f"speech {opinion['sig_mos']:.2f}, background {opinion['bak_mos']:.2f}"
    return MetricValue(opinion["ovrl_mos"], note=note)


def _is_audible(speech: "LabelledSpeech", shortest_s: float) -> bool:
    """Returns whether a signal is long enough, finite and not silent."""
    wav = speech.wav
    is_short = len(wav) < shortest_s * speech.sample_rate
    return not is_short and bool(np.isfinite(wav).all() and np.abs(wav).max() >= _SILENT_PEAK)


def opinions(wav: np.ndarray, sample_rate: int) -> dict[str, float]:
    """Returns all scores of the package, under its names, of a signal (S,), clipped to [-1, 1]."""
    import soxr

    resampled = soxr.resample(wav, sample_rate, MODEL_RATE).clip(-1, 1)  # another (S,)
    if len(resampled) < _WINDOW:
        resampled = np.resize(resampled, _WINDOW)
    return {k: float(value) for k, value in _model()(resampled, MODEL_RATE, False).items()}


@functools.cache
def _model() -> Any:  # noqa: ANN401  # the package has no types
    """Returns the package's model, one per process: loading takes 0.1 s."""
    from onnxruntime import InferenceSession, SessionOptions
    from speechmos import dnsmos

    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    folder = Path(dnsmos.__file__).parent / "dnsmos_models"
    # its constructor starts as many threads as the machine has cores, in each process
    model = dnsmos.DNSMOS.__new__(dnsmos.DNSMOS)
    model.onnx_sess = InferenceSession(str(folder / "sig_bak_ovr.onnx"), options)
    model.p808_onnx_sess = InferenceSession(str(folder / "model_v8.onnx"), options)
    return model


def score_distillmos(speech: "LabelledSpeech") -> MetricValue | None:
    """Predicts the mean opinion score of the quality of speech, 1 to 5.

    The package takes all windows at once: 3 GB for a minute of speech, and 1.6 times the time.
    """
    if not _is_audible(speech, SHORTEST_DISTILLED_S):
        return None
    import soxr
    import torch

    sqa, network = _distillmos()
    wav = soxr.resample(speech.wav, speech.sample_rate, MODEL_RATE).clip(-1, 1)  # another (S,)
    wav = torch.from_numpy(np.pad(wav, (0, max(0, sqa.SEQ_LEN - len(wav)))))
    n_left = len(wav) - sqa.SEQ_LEN
    starts = (np.linspace(0, 1, math.ceil(n_left / sqa.MAX_HOP_LEN) + 1) * n_left).astype(int)
    with torch.inference_mode(), torch_threads(1):
        scores = [network(wav[None, start : start + sqa.SEQ_LEN]).item() for start in starts]
    return MetricValue(float(np.mean(scores)))


@functools.cache
def _distillmos() -> tuple[Any, Any]:
    """Returns the package's module and its network, one per process: loading takes 0.1 s."""
    import torch

    with without_modules("torchaudio"):
        from distillmos import sqa

    network = sqa.ConvTransformerSQAModel(load_weights=False, segmenting_in_forward=False)
    weights = torch.load(sqa.DEFAULT_WEIGHTS_CHKPT, map_location="cpu", weights_only=True)
    network.load_state_dict(weights["model"])
    return sqa, network.eval()


_metric = functools.partial(Metric, family="speech")
_SOUND = f"{SHORTEST_S} s of sound that is not silent"
_LONGER_SOUND = f"{SHORTEST_DISTILLED_S} s of sound that is not silent"
_DNSMOS = ("speechmos", "onnxruntime", "librosa", "soxr")
_DISTILLMOS = ("distillmos", "xls_r_sqa", "soxr")
METRICS = (
    _metric("wer", score_words, "lower", "%", NEEDS, _PACKAGES),
    _metric("cer", score_characters, "lower", "%", NEEDS, _PACKAGES),
    _metric("dnsmos", score_dnsmos, "higher", "MOS", _SOUND, _DNSMOS),
    _metric("distillmos", score_distillmos, "higher", "MOS", _LONGER_SOUND, _DISTILLMOS),
)
