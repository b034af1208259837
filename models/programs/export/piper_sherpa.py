"""Voices for Piper and sherpa-onnx: both networks as one graph, and the files that go with it.

Piper splits what espeak-ng says into characters; the clusters in its settings make them phones
again. A voice with phones of ARPAbet has those that are nearest to espeak-ng's. sherpa-onnx reads
a lexicon and a table of tokens.
"""

import re
import shutil
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.compose import merge_models
from onnx.parser import parse_graph

from models.programs.export.folder import ONE_PASS, ExportedVoice, check_one_pass, copy_licences
from models.programs.export.matcha_sherpa import (
    NOISE_SCALE,
    matcha_lexicon,
    matcha_models,
    matcha_tokens,
)
from models.programs.export.onnx_file import WeightType, add_prefix, to_onnx
from processors.text.g2p import CMUDICT_PATH
from processors.text.normalisation.numbers import year_or_number
from processors.text.symbols import ARPABET, ARPABET_OF_IPA, FULL_STOP, MARKS, SILENCE
from processors.text.voice_phones import PhoneSet
from utils.errors import InputError
from utils.files import new_folder, write_json
from utils.hub import origin_of

N_DROPPED = 3  # ids 0, 1 and 2 are between phones and at both ends; those of phones follow
# the pause of a mark; other punctuation has none
PAUSE_OF_MARK = {",": "<,>", ";": "<,>", ":": "<,>", ".": FULL_STOP, "?": "<?>", "!": "<!>"}
_BEFORE = """
before (int64[1, n_ids] input, int64[1] input_lengths, float[3] scales{sid}) => (
  int64[1, n_phones] phone_ids, int64[1] speaker_id,
  float[1, 1] duration, float[1, 1] pitch, float[1, 1] energy,
  float[1] temperature, int64[1] seed
) {{
  row = Constant <value_ints = [-1]> ()
  ids = Reshape (input, row)
  first = Constant <value_ints = [{n_dropped}]> ()
  is_phone = GreaterOrEqual (ids, first)
  ids_of_phones = Compress <axis = 0> (ids, is_phone)
  spoken = Gather (phone_of_id, ids_of_phones)
  silence = Constant <value_ints = [{silence}]> ()
  started = Concat <axis = 0> (silence, spoken)
  last = Constant <value_ints = [-1]> ()
  last_phone = Gather (started, last)
  open_end = Gather (is_open, last_phone)
  is_added = Cast <to = 9> (open_end)
  full_stop = Constant <value_ints = [{full_stop}]> ()
  added = Compress <axis = 0> (full_stop, is_added)
  phones = Concat <axis = 0> (started, added)
  batch = Constant <value_ints = [0]> ()
  phone_ids = Unsqueeze (phones, batch)
  speaker_id = {speaker}
  length_scale = Constant <value_ints = [1]> ()
  durations = Gather (scales, length_scale)
  duration = Unsqueeze (durations, batch)
  neutral = Constant <value_floats = [1.0]> ()
  pitch = Unsqueeze (neutral, batch)
  energy = Unsqueeze (neutral, batch)
  seed = Constant <value_ints = [0]> ()
  first_scale = Constant <value_ints = [0]> ()
  noise_scale = Gather (scales, first_scale)
  per_noise_scale = Constant <value_floats = [{per_noise_scale}]> ()
  temperature = Mul (noise_scale, per_noise_scale)
}}
"""
_AFTER = """
after (float[1, n] wav) => (float[1, 1, 1, n_samples] output) {
  axes = Constant <value_ints = [0, 1]> ()
  output = Unsqueeze (wav, axes)
}
"""
_AROUND = {"_": [0], "^": [1], "$": [2]}  # Piper's names of what is between phones and at the ends
_BETWEEN_WORDS = " "
# of languages whose name differs in capitals from that of the region where most speak them
_WITH_REGION = """
ar_JO ca_ES cmn_CN cs_CZ cy_GB da_DK el_GR en_US et_EE eu_ES fa_IR he_IL hi_IN ja_JP ka_GE kk_KZ
ko_KR lb_LU ml_IN nb_NO ne_NP sl_SI sr_RS sv_SE sw_CD te_IN uk_UA ur_PK vi_VN"""
_REGIONS = dict(pair.split("_") for pair in _WITH_REGION.split())
_FAMILIES = {"cmn": "zh", "nb": "no"}  # of espeak-ng, where Piper has another code
_N_NUMBERS = 10_000  # in a lexicon, read as years where they can be


def merged_graph(voice: ExportedVoice, weight_type: WeightType = "fp32") -> onnx.ModelProto:
    """Builds the graph of a voice with both networks, as Piper and sherpa-onnx take it.

    Its inputs are `input` (1, N) ids, `input_lengths` (1,) which is not used, `scales` (3,) of
    which the first, over 0.667, is a factor on the temperature of a flow and the second one on
    durations, and with several speakers `sid` (1,); its output is (1, 1, 1, S). It starts the
    text with a silence and ends it with a full stop if it ends with no pause.

    Raises:
        InputError: If the voice takes more than one pass, or noise.
    """
    check_one_pass(voice)
    acoustic, vocoder = (to_onnx(voice.graphs[name], weight_type) for name in ONE_PASS)
    add_prefix(acoustic.graph, "acoustic_")
    # with `outputs`, onnx.compose (1.23) would drop what only the body of a scan reads
    networks = merge_models(acoustic, vocoder, [("acoustic_mel", "mel")])
    inputs = [(name, f"acoustic_{name}") for name in voice.graphs["acoustic"].inputs]
    versions = {"opset_imports": acoustic.opset_import, "ir_version": acoustic.ir_version}
    before = helper.make_model(_before(voice), **versions)
    after = helper.make_model(parse_graph(_AFTER), **versions)
    model = merge_models(merge_models(before, networks, inputs), after, [("wav", "wav")])
    wav = next(output for output in model.graph.output if output.name == "output")
    del model.graph.output[:]
    model.graph.output.append(wav)
    return model


def _before(voice: ExportedVoice) -> onnx.GraphProto:
    """Builds the graph from the inputs of programs to those of the acoustic model."""
    symbols = voice.model.assets.required_vocabulary().symbols
    several = len(voice.model.speakers) > 1
    graph = parse_graph(
        _BEFORE.format(
            sid=", int64[1] sid" if several else "",
            speaker="Gather (speaker_of_sid, sid)" if several else "Constant <value_ints = [0]> ()",
            n_dropped=N_DROPPED,
            silence=symbols.index(SILENCE),
            full_stop=symbols.index(FULL_STOP),
            per_noise_scale=(voice.temperature or 0) / NOISE_SCALE,
        )
    )
    tables: dict[str, Sequence[int]] = {
        "phone_of_id": [0] * N_DROPPED + [*range(len(symbols))],
        "is_open": [symbol not in PAUSE_OF_MARK.values() for symbol in symbols],
    }
    if several:
        tables["speaker_of_sid"] = voice.speakers_by_sid
    for name, values in tables.items():
        graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
    return graph


def ids_of(voice: ExportedVoice, phones: Sequence[str]) -> list[int]:
    """Returns the ids of phones in the merged graph, or of the nearest that are trained.

    Empty if a phone has none near it.
    """
    trained = PhoneSet(voice.model.assets.known_phones)
    names = [trained.nearest(phone) for phone in phones]
    if not all(names):
        return []
    vocabulary = voice.model.assets.required_vocabulary()
    return [N_DROPPED + i for row in names for i in vocabulary.ids(row)]


def _check_phones(
    voice: ExportedVoice, extractors: Sequence[str], format_has: str, remedy: str
) -> None:
    model, text = voice.model, voice.model.config.preprocess.text
    if text.phone_extractor not in extractors or text.pauses != "classes":
        raise InputError(
            f"{model.home}: {format_has}, this voice needs phone_extractor {text.phone_extractor}"
            f" with pauses {text.pauses}; {remedy}"
        )


def export_piper(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes `piper_name`.onnx, its .onnx.json and the licences into `target`, or nothing.

    Raises:
        InputError: If the voice cannot speak in Piper, which needs phones of espeak-ng or ARPAbet,
            or `target` is not empty.
    """
    text = '{"phone_extractor": "espeak", "pauses": "classes"}'
    remedy = f"train a voice with preprocess.text {text}, or export without --format"
    _check_phones(voice, ("espeak", "lexicon"), "Piper gives phones of espeak-ng", remedy)
    model = voice.model
    if len({speaker.language for speaker in model.speakers}) > 1:
        raise InputError(f"{model.home}: Piper has one language per voice, this one has several")
    with new_folder(target) as folder:
        path = folder / f"{piper_name(voice)}.onnx"
        onnx.save(merged_graph(voice, weight_type), path)
        write_json(path.with_suffix(".onnx.json"), piper_settings(voice))
        copy_licences(voice, folder)


def piper_name(voice: ExportedVoice) -> str:
    """Returns the name of a voice as Piper writes it: en_US-choir-medium."""
    language, dataset, quality = _names(voice)
    return f"{language['code']}-{dataset}-{quality}"


def _names(voice: ExportedVoice) -> tuple[dict[str, str], str, str]:
    """Returns language, dataset (the name of the voice) and quality, by its sample rate."""
    family, *variants = voice.model.speakers[0].language.split("-")
    region = next((v.upper() for v in variants if len(v) == 2), None)
    region = region or _REGIONS.get(family, family.upper())
    family = _FAMILIES.get(family, family)
    language = {"code": f"{family}_{region}", "family": family, "region": region}
    name = (origin_of(voice.model.folder) or voice.model.home.resolve().name).partition("@")[0]
    dataset = re.sub(r"\W+", "_", name.rpartition("/")[2])
    return language, dataset, "low" if voice.model.mel.sample_rate < 20_000 else "medium"


def piper_settings(voice: ExportedVoice) -> dict[str, object]:
    """Returns what the .onnx.json holds."""
    model = voice.model
    vocabulary = model.assets.required_vocabulary()
    phones: dict[str, Sequence[str]] = dict(ARPABET_OF_IPA)  # of the voice, by espeak-ng's
    if model.config.preprocess.text.phone_extractor != "lexicon":
        phones = {phone: (phone,) for phone in vocabulary.symbols if phone not in MARKS}
    # as Piper decomposes them
    spoken = {unicodedata.normalize("NFD", phone): names for phone, names in phones.items()}
    pauses = {mark: (pause,) for mark, pause in PAUSE_OF_MARK.items()}
    ids = {sign: ids_of(voice, names) for sign, names in (spoken | pauses).items()}
    language, dataset, quality = _names(voice)
    unspoken = dict.fromkeys((" ", "ˈ", "ˌ", "ː", "ʲ", "-"), _AROUND["_"])
    names = (model.speakers[i].name for i in voice.speakers_by_sid)
    return {
        "language": language,
        "dataset": dataset,
        "audio": {"sample_rate": model.mel.sample_rate, "quality": quality},
        "espeak": {"voice": model.speakers[0].language},
        "phoneme_type": "espeak",
        "num_symbols": N_DROPPED + len(vocabulary),
        "num_speakers": len(model.speakers),
        "inference": {"noise_scale": NOISE_SCALE, "length_scale": 1, "noise_w": 0},
        "phoneme_id_map": _AROUND | unspoken | ids,
        "vowel_clusters": [list(sign) for sign in spoken if len(sign) > 1],
        "speaker_id_map": {name: sid for sid, name in enumerate(names)},
        "hop_length": model.mel.hop_length,
    }


def export_sherpa(voice: ExportedVoice, target: Path, weight_type: WeightType = "fp32") -> None:
    """Writes graphs, lexicon.txt, tokens.txt and the licences into `target`, or nothing.

    A voice of `espeak_characters` is written in the layout for Matcha-TTS.

    Raises:
        InputError: If the voice cannot speak in sherpa-onnx, which needs phones of ARPAbet or
            single characters of espeak-ng, or `target` is not empty.
    """
    check_one_pass(voice)
    with new_folder(target) as folder:
        if voice.model.config.preprocess.text.is_characters:
            models = matcha_models(voice, weight_type)
            texts = {"tokens": matcha_tokens(), "lexicon": matcha_lexicon(voice)}
        else:
            has = "this format has a lexicon of ARPAbet"
            _check_phones(voice, ("lexicon",), has, "for phones of espeak-ng use --format piper")
            models = {"model": merged_graph(voice, weight_type)}
            facts = {
                "model_type": "vits",
                "comment": "piper",  # the inputs of the graph
                "language": "English",
                "sample_rate": str(voice.model.mel.sample_rate),
                "n_speakers": str(len(voice.model.speakers)),
                "add_blank": "0",
                "punctuation": " ".join(PAUSE_OF_MARK),
            }
            helper.set_model_props(models["model"], facts)
            texts = {"tokens": _tokens(voice), "lexicon": _lexicon(voice)}
        for name, model in models.items():
            onnx.save(model, folder / f"{name}.onnx")
        for name, text in texts.items():
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
        copy_licences(voice, folder)
        shutil.copy(CMUDICT_PATH.with_suffix(".LICENSE"), folder)


def _tokens(voice: ExportedVoice) -> str:
    """Returns lines of a token and its id."""
    names = {name: name for name in ARPABET} | PAUSE_OF_MARK
    ids = {token: ids_of(voice, [name])[0] for token, name in names.items()}
    return "".join(f"{name} {i}\n" for name, i in {_BETWEEN_WORDS: 0, **ids}.items())


def _lexicon(voice: ExportedVoice) -> str:
    """Returns lines of a word and its phones: the user's words, those of CMUdict, numbers.

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
    for number in map(str, range(_N_NUMBERS)):
        words = re.split("[ -]", year_or_number(number))
        lines.setdefault(number, " ".join(lines[word] for word in words))
    return "".join(f"{word} {phones}\n" for word, phones in lines.items())
