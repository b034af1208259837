"""Writes a voice as Piper's programs read it: one graph, and one file of settings beside it.

Piper splits what espeak-ng says into characters; the clusters in the settings make them phones
again.
"""

import unicodedata
from pathlib import Path

import onnx

from models.export.folder import ExportedVoice, copy_licences
from models.export.merged import N_DROPPED, PAUSE_OF_MARK, ids_of, merged_graph
from models.export.weights import WeightType
from processors.text.symbols import MARKS
from utils.errors import InputError
from utils.files import new_folder, write_json

_AROUND = {"_": [0], "^": [1], "$": [2]}  # Piper's names of what is between phones and at the ends


def export_piper(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes voice.onnx, voice.onnx.json and the licences, completely or not at all.

    Args:
        voice: A voice with phones of espeak-ng.
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
    symbols = model.assets.required_vocabulary().symbols
    phones = {unicodedata.normalize("NFD", name): name for name in symbols if name not in MARKS}
    ids = {sign: ids_of(voice, [name]) for sign, name in (phones | PAUSE_OF_MARK).items()}
    unspoken = dict.fromkeys((" ", "ˈ", "ˌ", "-"), _AROUND["_"])
    return {
        "audio": {"sample_rate": model.mel.sample_rate},
        "espeak": {"voice": model.speakers[0].language},
        "phoneme_type": "espeak",
        "num_symbols": N_DROPPED + len(symbols),
        "num_speakers": len(model.speakers),
        "inference": {"noise_scale": 0, "length_scale": 1, "noise_w": 0},
        "phoneme_id_map": _AROUND | unspoken | ids,
        "vowel_clusters": [list(sign) for sign in phones if len(sign) > 1],
        "speaker_id_map": {speaker.name: index for index, speaker in enumerate(model.speakers)},
        "hop_length": model.mel.hop_length,
    }


def _check(voice: ExportedVoice) -> None:
    model, text = voice.model, voice.model.config.preprocess.text
    if text.phone_extractor != "espeak" or text.pauses != "classes":
        raise InputError(
            f"{model.home}: Piper gives phones of espeak-ng, this voice needs phone_extractor"
            f" {text.phone_extractor} with pauses {text.pauses}; train a voice with preprocess.text"
            ' {"phone_extractor": "espeak", "pauses": "classes"}, or export without --format'
        )
    if len({speaker.language for speaker in model.speakers}) > 1:
        raise InputError(f"{model.home}: Piper has one language per voice, this one has several")
