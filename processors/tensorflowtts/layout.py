"""Names, symbols and arrays of a dump.

Files of the utterance U, in `train/` or `valid/`:

| file | content |
|---|---|
| `ids/U-ids.npy` | (N,) int32, the last one is eos |
| `raw-feats/U-raw-feats.npy`, `norm-feats/U-norm-feats.npy` | (T, M) float32, log10 |
| `raw-f0/U-raw-f0.npy`, `raw-energies/U-raw-energy.npy` | (T,) float32; Hz, 0 = unvoiced |
| `wavs/U-wave.npy` | (T * hop,) float32 |
| `duration/U-durations.npy` | (N,) frames; a dump gets them later, from an aligner |

The other files describe the whole dump; statistics have a row of means and one of standard
deviations, float32, over the training split, for F0 and energy without zeros.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.preprocess import PreprocessConfig
from modules.mel import MelConfig
from processors.text.symbols import END, PAD, WORD_BOUNDARY
from processors.text.voice_phones import nvidia_vocabulary
from utils.errors import InputError

DEFINITION = MelConfig(f_min=80.0, f_max=7600.0, log_floor=1e-10)  # of the mels, but in log10
SYMBOL_SET = "tensorflowtts_english"  # `preprocess.text.phone_extractor`
SPLITS = ("train", "valid")
VOCABULARY, MAPPER, LENGTHS = "vocab.txt", "ljspeech_mapper.json", "length.json"
MEL_DEFINITION = "audio.json"  # of Arion: the dump itself does not tell what its mels are
STATS, STATS_F0, STATS_ENERGY = "stats.npy", "stats_f0.npy", "stats_energy.npy"
_FOREIGN_NAMES = {PAD: "pad", END: "eos", WORD_BOUNDARY: " "}


class ArrayFile(NamedTuple):
    """One kind of file of an utterance."""

    folder: str
    end: str  # of the names

    def path(self, dump: Path, split: str, id: str) -> Path:
        """Returns the file of an utterance in a split of a dump."""
        return dump / split / self.folder / f"{id}-{self.end}.npy"


IDS = ArrayFile("ids", "ids")  # (N,) int32, the last one is eos
RAW_MEL = ArrayFile("raw-feats", "raw-feats")  # (T, M) float32, log10
NORM_MEL = ArrayFile("norm-feats", "norm-feats")  # of the same shape and type
F0 = ArrayFile("raw-f0", "raw-f0")  # (T,) float32, Hz, 0 = unvoiced
ENERGY = ArrayFile("raw-energies", "raw-energy")  # (T,) float32
WAV = ArrayFile("wavs", "wave")  # (T * hop,) float32
DURATIONS = ArrayFile("duration", "durations")  # (N,) frames; added later, from an aligner


def symbols() -> tuple[str, ...]:
    """Returns the 149 symbols by their names in dumps, in the order of their ids."""
    names = nvidia_vocabulary(SYMBOL_SET).symbols
    return tuple(_FOREIGN_NAMES.get(name, name.strip("<>")) for name in names)


def check_config(config: PreprocessConfig, mel: MelConfig) -> None:
    """Makes sure that a configuration has the symbols of a dump, and this mel."""
    remedy = "use egs/tts/FastSpeech2/exp_config_tensorflowtts.json, or a configuration on it"
    if different := config.mel.differences(mel):
        keys = f"{', '.join(different)} (the configuration's and its)"
        raise InputError(f"the mel is not that of the dump: {keys}; {remedy}")
    extractor, share = config.text.phone_extractor, config.text.p_arpabet
    if extractor != SYMBOL_SET or share != 0:
        settings = f"phone_extractor {extractor} and p_arpabet {share:g}"
        fault = f"preprocess.text has {settings}, a dump {SYMBOL_SET} and 0"
        raise InputError(f"{fault}; {remedy}")


def ids_file(dump: Path, split: str) -> Path:
    """Returns the file of the ids of a split."""
    return dump / f"{split}_utt_ids.npy"


def to_log10(mel: np.ndarray) -> np.ndarray:
    """Converts (M, T) in nats to (T, M) float32 in log10."""
    return np.ascontiguousarray(mel.T / math.log(10), dtype=np.float32)


def to_nats(mel: np.ndarray) -> np.ndarray:
    """Converts (T, M) in log10 to (M, T) float32 in nats."""
    return np.ascontiguousarray(mel.T * math.log(10), dtype=np.float32)
