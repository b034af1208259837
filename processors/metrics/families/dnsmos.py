"""Predicted mean opinion score of noisy speech: DNSMOS P.835 (Reddy et al. 2022, arXiv:2110.01763).

The overall score (1 to 5) that listeners would give, predicted from the signal alone; clean
recordings reach 3 to 3.5. Higher is better. The model was trained on noisy calls and on the output
of noise suppressors: it is sensitive to noise, buzz and codecs, not to naturalness, rhythm or wrong
words. Compare the score with that of the recordings. The note gives the scores of the speech and of
the background.

Computed by the package `speechmos` (model `sig_bak_ovr`, 16 kHz) as the mean over windows of 9 s,
one second apart. Shorter signals are repeated to fill one window; the package repeats them further
and averages more windows (a difference of 0.04). The level matters: the same clip 12 dB lower
scores up to 0.15 better or worse.
"""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.metrics.records import MetricValue, SpeechMetric

if TYPE_CHECKING:
    from processors.metrics.recognition.labelled_speech import LabelledSpeech

MODEL_RATE = 16000  # Hz
SHORTEST_S = 0.5  # in shorter signals the repetition dominates
_WINDOW = int(9.01 * MODEL_RATE)  # input of the model, samples
_SILENT_PEAK = 1e-4  # -80 dB: digital silence scores higher than noise


def score_dnsmos(speech: "LabelledSpeech") -> MetricValue | None:
    """Predicted mean opinion score of noisy speech, 1 to 5: DNSMOS P.835 (arXiv:2110.01763)."""
    wav = speech.wav
    too_short = len(wav) < SHORTEST_S * speech.sample_rate
    if too_short or not np.isfinite(wav).all() or np.abs(wav).max() < _SILENT_PEAK:
        return None
    opinion = opinions(wav, speech.sample_rate)
    note = f"speech {opinion['sig_mos']:.2f}, background {opinion['bak_mos']:.2f}"
    return MetricValue(opinion["ovrl_mos"], note=note)


def opinions(wav: np.ndarray, sample_rate: int) -> dict[str, float]:
    """All scores of the package, under its names, of a signal (S,), clipped to [-1, 1]."""
    import soxr

    resampled = soxr.resample(wav, sample_rate, MODEL_RATE).clip(-1, 1)  # another (S,)
    if len(resampled) < _WINDOW:
        resampled = np.resize(resampled, _WINDOW)
    return {k: float(value) for k, value in _model()(resampled, MODEL_RATE, False).items()}


@functools.cache
def _model() -> Any:  # noqa: ANN401  # the package has no types
    """The package's model, one per process: loading takes 0.1 s."""
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


METRIC = SpeechMetric(
    "dnsmos",
    score_dnsmos,
    "higher",
    "MOS",
    f"{SHORTEST_S} s of sound that is not silent",
    packages=("speechmos", "onnxruntime", "librosa", "soxr"),
)
