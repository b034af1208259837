"""One utterance beside its recording, as each kind of metric wants to see them."""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import soundfile

from modules.mel import MelConfig
from processors.scoring.checks import Checked, run_checks
from processors.scoring.metrics import Copy, CopyMetric, PairMetric, SpeechMetric, Value, find
from processors.scoring.pair import Pair, Voice
from processors.scoring.recognition import Speech
from utils.errors import InputError

TOLERANCE_FRAMES = 2  # by which a copy may be shorter or longer: it ends with a whole frame


class Sound(NamedTuple):
    """A sound file."""

    wav: np.ndarray  # (S,) float32
    sample_rate: int  # Hz


class Original:
    """The recording of an utterance; what it takes to compare it is computed once.

    Args:
        speech: The recording.
        checks: By name.
    """

    def __init__(self, speech: Speech, checks: tuple[str, ...]) -> None:
        self.speech = speech
        self._checks = checks
        self._values: dict[str, Value | None] = {}

    @cached_property
    def voice(self) -> Voice:
        """It as half of a pair."""
        return _voice_of(self.speech)

    @cached_property
    def checked(self) -> Checked:
        """Its own failures."""
        return run_checks(self.speech, None, self._checks)

    def value(self, name: str, metric: SpeechMetric) -> Value | None:
        """Its score by itself."""
        if name not in self._values:
            self._values[name] = metric.score(self.speech)
        return self._values[name]


class Judge:
    """What metrics say of a file.

    Args:
        file: For messages.
        speech: What it holds.
        original: Its recording, where there is one.
        is_copy: Whether it stands for the recording sample by sample.
        mel: What copies were made from.
    """

    def __init__(
        self, file: Path, speech: Speech, original: Original | None, is_copy: bool, mel: MelConfig
    ) -> None:
        self._file = file
        self._speech = speech
        self._original = original
        self._is_copy = is_copy
        self._mel = mel

    def values(self, name: str) -> dict[str, Value | None]:
        """What a metric says, by column; nothing where it needs a recording that is missing."""
        module = find(name)
        kind = module.METRIC.judges
        if kind == "speech":
            return self._by_itself(name, cast("SpeechMetric", module))
        if self._original is None or (kind == "copy" and not self._is_copy):
            return {}
        if kind == "copy":
            return {name: cast("CopyMetric", module).score(self._copy)}
        return {name: cast("PairMetric", module).score(self._pair)}

    def _by_itself(self, name: str, metric: SpeechMetric) -> dict[str, Value | None]:
        ours = metric.score(self._speech)
        if self._original is None:
            return {name: ours}
        theirs = self._original.value(name, metric)
        difference = None
        if ours is not None and theirs is not None:
            difference = Value(ours.value - theirs.value, ours.weight)
        return dict(zip((name, *beside(name)), (ours, theirs, difference), strict=True))

    @cached_property
    def _copy(self) -> Copy:
        """Both, cut to the shorter one.

        Raises:
            InputError: If their rates differ, or their lengths by more than two frames.
        """
        speech, mel = self._speech, self._mel
        if speech.sample_rate != mel.sample_rate:
            raise InputError(
                f"{self._file}: {speech.sample_rate} Hz, and the mel is one of {mel.sample_rate} "
                "Hz; give the configuration that it was made with"
            )
        wav = cast("Original", self._original).speech.wav
        S, S_hat = len(wav), len(speech.wav)
        if abs(S - S_hat) > TOLERANCE_FRAMES * mel.hop_length:
            raise InputError(
                f"{self._file}: {S_hat} samples, and its recording has {S}: not a copy, sample by "
                "sample; run stage 3 again, or leave the metrics of copies out of --metrics"
            )
        return Copy(wav[:S_hat], speech.wav[:S], mel)

    @cached_property
    def _pair(self) -> Pair:
        ours = _voice_of(self._speech)
        return Pair(cast("Original", self._original).voice, ours, self._is_copy)


def beside(name: str) -> tuple[str, str]:
    """The columns that stand beside a score of a sound by itself."""
    return f"{name}_recorded", f"{name}_difference"


def _voice_of(speech: Speech) -> Voice:
    return Voice(speech.wav, speech.sample_rate, speech.phones, speech.plugins.encoder)


def read_sound(path: Path) -> Sound:
    """Reads what was synthesised, mono.

    Raises:
        InputError: If it is no sound file, is empty, or holds values that are not finite.
    """
    try:
        samples, sample_rate = soundfile.read(path, dtype="float32", always_2d=True)  # (S, C)
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: not readable as audio ({error.error_string})") from error
    wav = samples.mean(axis=1)  # (S,)
    if not len(wav) or not np.isfinite(wav).all():
        found = "no sample" if not len(wav) else "NaN or infinity"
        raise InputError(f"{path}: holds {found}; run stage 3 again, or repair the file")
    return Sound(wav, sample_rate)
