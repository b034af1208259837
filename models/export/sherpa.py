"""Writes a voice as sherpa-onnx reads it: one graph with facts, a lexicon and a table of tokens."""

import shutil
from pathlib import Path

import onnx
from onnx import helper

from models.export.folder import ExportedVoice, copy_licences
from models.export.merged import PAUSE_OF_MARK, ids_of, merged_graph
from models.export.onnx_file import WeightType
from processors.text.lexicon import CMUDICT_PATH
from processors.text.symbols import ARPABET
from utils.errors import InputError
from utils.files import new_folder

_BETWEEN_WORDS = " "


def export_sherpa(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes model.onnx, lexicon.txt, tokens.txt and the licences, completely or not at all.

    Args:
        voice: A voice with phones of ARPAbet.
        target: Folder to make; empty or missing.
        weight_type: How weights are stored.

    Raises:
        InputError: If the voice cannot speak in sherpa-onnx, or `target` is not empty.
    """
    _check(voice)
    model = merged_graph(voice, weight_type)
    helper.set_model_props(
        model,
        {
            "model_type": "vits",
            "comment": "piper",  # the inputs of the graph
            "language": "English",
            "sample_rate": str(voice.model.mel.sample_rate),
            "n_speakers": str(len(voice.model.speakers)),
            "add_blank": "0",
            "punctuation": " ".join(PAUSE_OF_MARK),
        },
    )
    with new_folder(target) as folder:
        onnx.save(model, folder / "model.onnx")
        (folder / "tokens.txt").write_text(_tokens(voice), encoding="utf-8")
        (folder / "lexicon.txt").write_text(_lexicon(voice), encoding="utf-8")
        copy_licences(voice, folder)
        shutil.copy(CMUDICT_PATH.with_suffix(".LICENSE"), folder)


def _tokens(voice: ExportedVoice) -> str:
    """Lines of a token and its id."""
    names = {name: name for name in ARPABET} | PAUSE_OF_MARK
    ids = {token: ids_of(voice, [name])[0] for token, name in names.items()}
    return "".join(f"{name} {i}\n" for name, i in {_BETWEEN_WORDS: 0, **ids}.items())


def _lexicon(voice: ExportedVoice) -> str:
    """Lines of a word and its phones: the user's words, then those of CMUdict.

    sherpa-onnx uses the first line of a word; other pronunciations of CMUdict have a "(".
    """
    own = voice.model.assets.lexicon or ""
    entries = [*own.splitlines(), *CMUDICT_PATH.read_text(encoding="utf-8").splitlines()]
    known = frozenset(ARPABET)
    lines: dict[str, str] = {}
    for entry in entries:
        word, *phones = entry.split() or [""]
        if phones and "(" not in word and known.issuperset(phones):
            lines.setdefault(word.lower(), " ".join(phones))
    return "".join(f"{word} {phones}\n" for word, phones in lines.items())


def _check(voice: ExportedVoice) -> None:
    model, text = voice.model, voice.model.config.preprocess.text
    if text.phone_extractor != "lexicon" or text.pauses != "classes":
        raise InputError(
            f"{model.home}: this format has a lexicon of ARPAbet, this voice needs phone_extractor"
            f" {text.phone_extractor} with pauses {text.pauses}; for phones of espeak-ng use"
            " --format piper"
        )
