"""Writes a voice as Piper's programs read it: one graph, and one file of settings beside it.

Piper splits what espeak-ng says into characters; the clusters in the settings make them phones
again. A voice with phones of ARPAbet has those that are nearest to espeak-ng's.
"""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import onnx

from models.export.folder import ExportedVoice, copy_licences
from models.export.merged import N_DROPPED, PAUSE_OF_MARK, ids_of, merged_graph
from models.export.onnx_file import WeightType
from processors.text.espeak_arpabet import ARPABET_OF_IPA
from processors.text.symbols import MARKS, Vocabulary
from utils.errors import InputError
from utils.files import new_folder, write_json

_AROUND = {"_": [0], "^": [1], "$": [2]}  # Piper's names of what is between phones and at the ends


def export_piper(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes voice.onnx, voice.onnx.json and the licences, completely or not at all.

    Args:
        voice: A voice with phones of espeak-ng or of ARPAbet.
        target: Folder to make; empty or missing.
        weight_type: How weights are stored.

    Raises:
        InputError: If the voice cannot speak in Piper, or `target` is not empty.
    """
    _check(voice)
    with new_folder(target) as folder:
        onnx.save(merged_graph(voice, weight_type), folder / "voice.onnx")
        write_json(folder / "voice.onnx.json", piper_settings(voice))
        copy_licences(voice, folder)


def piper_settings(voice: ExportedVoice) -> dict[str, object]:
    """What voice.onnx.json holds."""
    model = voice.model
    vocabulary = model.assets.required_vocabulary()
    spoken = _phones(model.config.preprocess.text.phone_extractor, vocabulary)
    pauses = {mark: (pause,) for mark, pause in PAUSE_OF_MARK.items()}
    ids = {sign: ids_of(voice, names) for sign, names in (spoken | pauses).items()}
    unspoken = dict.fromkeys((" ", "ˈ", "ˌ", "ː", "ʲ", "-"), _AROUND["_"])
    return {
        "audio": {"sample_rate": model.mel.sample_rate},
        "espeak": {"voice": model.speakers[0].language},
        "phoneme_type": "espeak",
        "num_symbols": N_DROPPED + len(vocabulary),
        "num_speakers": len(model.speakers),
        "inference": {"noise_scale": 0, "length_scale": 1, "noise_w": 0},
        "phoneme_id_map": _AROUND | unspoken | ids,
        "vowel_clusters": [list(sign) for sign in spoken if len(sign) > 1],
        "speaker_id_map": {speaker.name: index for index, speaker in enumerate(model.speakers)},
        "hop_length": model.mel.hop_length,
    }


def _phones(extractor: str, vocabulary: Vocabulary) -> dict[str, Sequence[str]]:
    """Phones of the voice, by what espeak-ng says, as Piper decomposes it."""
    if extractor == "lexicon":
        phones: dict[str, Sequence[str]] = dict(ARPABET_OF_IPA)
    else:
        phones = {phone: (phone,) for phone in vocabulary.symbols if phone not in MARKS}
    return {unicodedata.normalize("NFD", phone): names for phone, names in phones.items()}


def _check(voice: ExportedVoice) -> None:
    model, text = voice.model, voice.model.config.preprocess.text
    if text.phone_extractor not in ("espeak", "lexicon") or text.pauses != "classes":
        raise InputError(
            f"{model.home}: Piper gives phones of espeak-ng, this voice needs phone_extractor"
            f" {text.phone_extractor} with pauses {text.pauses}; train a voice with preprocess.text"
            ' {"phone_extractor": "espeak", "pauses": "classes"}, or export without --format'
        )
    if len({speaker.language for speaker in model.speakers}) > 1:
        raise InputError(f"{model.home}: Piper has one language per voice, this one has several")
