"""All metrics and checks by name.

A metric says how good a voice is; a check finds the sentences that failed. Limits of checks are set
so that good recordings are hardly ever flagged; docs/evaluation.md has what was measured with them.
"""

from collections.abc import Iterable

from processors.metrics.checks import CHECKS as _CHECKS
from processors.metrics.families import copies, pairs, speech
from utils.errors import InputError, nearest

_ALL = (*copies.METRICS, *pairs.METRICS, *speech.METRICS)
METRICS = {metric.name: metric for metric in sorted(_ALL, key=lambda metric: metric.name)}
CHECKS = {check.name: check for check in _CHECKS}
MEANINGS = {  # definitions of metrics and checks, in one sentence each
    "cer": "Character error rate of a speech recogniser, spaces between words included; lower is"
    " better.",
    "distillmos": "Predicted mean opinion score of the quality of speech, 1 to 5: DistillMOS"
    " (arXiv:2502.05356).",
    "dnsmos": "Predicted mean opinion score of noisy speech, 1 to 5: DNSMOS P.835"
    " (arXiv:2110.01763).",
    "duration_rmse": "Root mean square error of phone durations, ms.",
    "energy_pc": "Pearson correlation of the levels of `energy_rmse`, -1 to 1.",
    "energy_rmse": "Root mean square error of the level, dB, under a Hann window of 25 ms.",
    "f0rmse": "Root mean square error of the fundamental frequency, Hz, over frames voiced in"
    " both.",
    "f0rmse_cents": "Root mean square error of the fundamental frequency in cents (hundredths of a"
    " semitone).",
    "fpc": "F0 Pearson correlation, over frames that are voiced in both, -1 to 1.",
    "mcd": "Mel-cepstral distortion, dB (Kubichek 1993), along the dynamic time warping path.",
    "mcd_frames": "Mel-cepstral distortion of frames with a known correspondence, dB.",
    "mel_l1": "L1 distance between the log-mels of recording and copy, nats: 0.1 is 10 % of a"
    " magnitude.",
    "mstft": "Multi-resolution STFT distance (Yamamoto et al. 2020, arXiv:1910.11480, eq. 7).",
    "pesq": "Perceptual evaluation of speech quality, wide-band (ITU-T P.862.2, 2007).",
    "similarity": "Speaker similarity: cosine between the embeddings of recording and synthesised"
    " speech.",
    "speech_rate": "Speech rate relative to the recording: 1.1 is 10 % faster than recorded.",
    "stoi": "Short-time objective intelligibility (Taal et al. 2011,"
    " doi:10.1109/TASL.2011.2114881).",
    "v_uv_f1": "F1 score of the voiced/unvoiced decision.",
    "wer": "Word error rate of a speech recogniser; lower is better.",
    "clipping": "Clipped samples: peaks of the waveform that are cut off flat.",
    "silence": "Silence that is too long: before, after or inside the speech, or nothing but"
    " silence.",
    "words": "Words that are skipped or repeated.",
}


def check_names(metrics: Iterable[str], checks: Iterable[str]) -> None:
    """Refuses unknown metrics and checks by an InputError that lists the known ones."""
    for noun, names, records in (("metric", metrics, METRICS), ("check", checks, CHECKS)):
        for name in names:
            if name not in records:
                fault = f"no {noun} {name!r}{nearest(name, records)}"
                raise InputError(f"{fault} (known: {', '.join(records)})")
