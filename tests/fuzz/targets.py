"""What is damaged, and which part of the toolkit reads it."""

import json
import logging
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import soundfile
import torch

from config.preprocess import CorpusConfig, PreprocessConfig
from config.text import TextConfig
from models.base.registry import load_config
from models.checkpoint.folders import MANIFEST, latest_checkpoint, write_checkpoint, write_manifest
from models.checkpoint.loading import CHECKPOINTS, WEIGHTS, load_model
from models.synthesizer.runs.text_synthesis import read_input_texts
from models.training.data import ProcessRank, collect_assets, load_data
from preprocessors.corpora import read_corpus
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, make_aligner
from processors.audio.files import AudioError, read_audio
from processors.dataset.store import FeatureStore
from processors.durations.sources import durations_in
from processors.tensorflowtts.importing import import_dump
from processors.text.frontend import TextFrontend
from processors.text.g2p import is_arpabet, read_lexicon
from processors.text.markup.ssml import SsmlVoice, read_ssml
from processors.text.passages import marked_up_passages
from processors.text.reading import TextReader, check_text
from processors.text.symbols import ARPABET, MARKS
from processors.text.voice_phones import VoicePhones
from tests.fuzz.mutators import mutate, mutate_length
from tests.models.checkpoint.importers import tensorflowtts_originals
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.training import small_tasks
from tests.models.training.test_checkpointer import everything
from tests.processors.alignment.test_textgrid import PHONES, SPOKEN, WORDS, long_form, short_form
from tests.processors.small_corpus import copy_corpus
from tests.processors.tensorflowtts.dumps import IDS, add_durations, dump_config, export
from utils.config import to_plain
from utils.errors import InputError, UtteranceError

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "egs" / "_demo" / "LJSpeech-mini"


class Target(NamedTuple):
    """Files, and their reader."""

    shards: int  # tests of a hundred mutations each in `make test-slow`
    write: Callable[[Path], None]  # writes the files into an empty folder
    damaged: tuple[str, ...]  # patterns of those that are damaged, one in each case
    read: Callable[[Path], object]  # gives what can be compared with ==
    # whether a damaged file that is accepted must give what the whole one gives, unless a line of
    # the log names it
    exact: bool = False
    # errors without the file, which the caller of `read` names, such as those of one utterance
    rejects: tuple[type[Exception], ...] = ()
    mutate: Callable[[bytes, random.Random], bytes] = mutate  # damages one file


def _write_recipe(folder: Path) -> None:
    recipe = ROOT / "egs" / "tts" / "FastSpeech2"
    text = (recipe / "exp_config.json").read_text(encoding="utf-8")
    text = text.replace('"base_config": "', f'"base_config": "{recipe}/')
    (folder / "exp_config.json").write_text(text, encoding="utf-8")


def _read_config(folder: Path) -> object:
    return load_config(folder / "exp_config.json")


def _write_whole_config(folder: Path) -> None:
    config = load_config(ROOT / "egs" / "vocoder" / "HiFiGAN" / "exp_config.json")
    (folder / "exp_config.json").write_text(json.dumps(to_plain(config), indent=1))


def _write_table(folder: Path) -> None:
    (folder / "metadata.csv").write_bytes((DEMO / "metadata.csv").read_bytes())
    (folder / "wavs").symlink_to(DEMO / "wavs")


def _read_table(format: str) -> Callable[[Path], object]:
    return lambda folder: read_corpus("mini", folder, CorpusConfig(format=format))


def _write_textgrids(folder: Path) -> None:
    tiers = {"words": WORDS, "phones": PHONES}
    (folder / "TextGrid").mkdir()
    for id, form in (("long", long_form), ("short", short_form)):
        (folder / "TextGrid" / f"{id}.TextGrid").write_text(form(tiers), encoding="utf-8")


def _align(folder: Path) -> object:
    config = PreprocessConfig(aligner="textgrid", sample_rate=1000, f_max=500.0, f0_max=400.0)
    align = make_aligner(config, folder)
    wav = np.zeros(1000, dtype=np.float32)
    files = [folder / "long.wav", folder / "short.wav"]
    utterances = [Utterance(file.stem, file, SPOKEN.text, "Ada") for file in files]
    return [align(utterance, wav, SPOKEN) for utterance in utterances]


_SOUNDS = (
    *(("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "IMA_ADPCM"), ("WAV", "MS_ADPCM")),
    *(("WAVEX", "FLOAT"), ("RF64", "PCM_16"), ("AIFF", "PCM_16"), ("AIFF", "IMA_ADPCM")),
    *(("W64", "PCM_16"), ("W64", "IMA_ADPCM"), ("OGG", "VORBIS"), ("FLAC", "PCM_16")),
)


def _write_sounds(folder: Path) -> None:
    speech, rate = soundfile.read(DEMO / "wavs" / "LJ001-0002.flac")
    for format, subtype in _SOUNDS:
        path = folder / f"{format}_{subtype}.wav"
        soundfile.write(path, speech[:rate], rate, format=format, subtype=subtype)


def _read_sounds(folder: Path) -> object:
    """Lengths; a notice that a header gives no length is logged, as stage 1 does."""
    lengths = []
    for path in sorted(folder.iterdir()):
        wav, notices = read_audio(path, PreprocessConfig())
        for notice in notices:
            logging.getLogger("arion").info("%s: %s", path.name, notice)
        lengths.append(len(wav))
    return lengths


def _write_text(folder: Path) -> None:
    english = (
        "Dr. Smith paid $3.50 on 5/10/1996 at 10:30; was it {HH AH0 L OW1}? 3-4 km, e.g. VIII!"
    )
    (folder / "en-us.txt").write_text(f"{english}\nA second text.\n", encoding="utf-8")
    (folder / "de.txt").write_text("Es waren 5-10 °C, am 3.5. gegen 10:30 Uhr: schön!\n", "utf-8")


@cache
def _frontend(language: str) -> TextFrontend:
    config = TextConfig() if language == "en-us" else TextConfig(phone_extractor="espeak")
    return TextFrontend(config, language)


def _read_texts(folder: Path) -> object:
    files = sorted(folder.iterdir())
    return [_frontend(file.stem)(one.text) for file in files for one in read_input_texts(file)]


def _write_text_table(folder: Path) -> None:
    rows = ("text\tpitch\toutput\tspeaker", "Hello.\tpitch.txt\tone\tanna", "Bye.\t\t\t")
    (folder / "texts.tsv").write_text("\n".join(rows))
    (folder / "pitch.txt").write_text("120\n0\n130.5\n0\n")


def _write_lexicon(folder: Path) -> None:
    (folder / "lexicon.txt").write_text("word  W ER1 D\nother AH1 DH ER0\n;;; a comment\n")


def _read_lexicon(folder: Path) -> object:
    return read_lexicon(folder / "lexicon.txt", is_arpabet)


def _write_ssml(folder: Path) -> None:
    """Every element, with blanks between them, where damage is most likely to parse."""
    (folder / "text.ssml").write_text(
        '<?xml version="1.0"?>\n<speak version="1.1" xml:lang="en-us">\n'
        '<p><s>One <prosody rate="80%" pitch="+2st" volume="-6dB">two</prosody>.</s></p>\n'
        '<break time="300ms"/> <mark name="m"/> <emphasis level="strong">three</emphasis>\n'
        '<sub alias="four">4</sub> <phoneme alphabet="ipa" ph="fˈaɪv">five</phoneme>\n'
        '<say-as interpret-as="date" format="dmy">5/1/2024</say-as>\n'
        '<lang xml:lang="en">six</lang>\n'
        '<say-as interpret-as="telephone">+1 555-0100</say-as> {S EH1 V AH0 N}\n</speak>\n',
        encoding="utf-8",
    )


@cache
def _reader() -> TextReader:
    return TextReader(TextConfig(), 60, VoicePhones((*MARKS, *ARPABET), "replace"))


def _read_ssml(folder: Path) -> object:
    (text,) = read_input_texts(folder / "text.ssml")
    controls = {"duration", "pitch"}
    voice = SsmlVoice("FastSpeech2", "en-us", {"en-us"}, controls, TextConfig(), ARPABET)
    try:
        check_text(text.text)
        ssml = text.ssml._replace(strict=len(text.text) % 2 == 0)
        return marked_up_passages(_reader(), read_ssml(ssml, voice), "en-us")
    except InputError as error:  # the caller names the file
        raise UtteranceError(str(error)) from error


def _write_durations(folder: Path) -> None:
    counts = np.array([3, 0, 5, 2])
    speech = {
        name: [{name[:-1]: label, "start_s": start, "end_s": end} for start, end, label in rows]
        for name, rows in (("words", WORDS), ("phones", PHONES))
    }
    (folder / "a.json").write_text(json.dumps(speech, indent=1))
    (folder / "a.TextGrid").write_text(long_form({"words": WORDS, "phones": PHONES}))
    np.save(folder / "a.npy", counts)
    torch.save(torch.from_numpy(counts), folder / "a.pt")


def _read_durations(folder: Path) -> object:
    entries = []
    for path in sorted(folder.iterdir()):
        entries += durations_in(path, path.suffix.lower()[1:]).entries
    return [entry.read() for entry in entries]


def _write_experiment(folder: Path) -> None:
    """A voice as training leaves it: checksums of its files, and a checkpoint."""
    make_voice(folder)
    files = [path.name for path in folder.glob("*.json")]
    write_checkpoint(folder / CHECKPOINTS, 2, {WEIGHTS: (folder / WEIGHTS).read_bytes()})
    (folder / WEIGHTS).unlink()
    write_manifest(folder, files)


@torch.no_grad()
def _speak(folder: Path) -> object:
    model = load_model(folder)
    vocabulary = model.assets.required_vocabulary(folder)
    try:
        phones = torch.tensor([vocabulary.ids(("<sil>", "AA1", "<.>"))])
    except InputError as error:  # of this text
        raise UtteranceError(str(error)) from error
    out = model.network.infer(phones, torch.tensor([3]))
    return model.mel, model.speakers, out.mel.tolist(), out.pitch.tolist()


_STATE = small_tasks.train_config(batch_size=4, max_steps=2)


def _write_run(folder: Path) -> None:
    store = small_tasks.make_processed(folder / "data")
    small_tasks.make_trainer(store, folder / CHECKPOINTS, _STATE).fit()


def _resume(folder: Path) -> object:
    store = FeatureStore(folder / "data")
    trainer = small_tasks.make_trainer(store, folder / CHECKPOINTS, _STATE)
    trainer.checkpointer.resume(latest_checkpoint(folder / CHECKPOINTS))
    return everything(trainer)


def _resume_unchecked(folder: Path) -> object:
    """A run whose checksums are those of the damaged files."""
    (checkpoint,) = (folder / CHECKPOINTS).iterdir()
    names = [path.name for path in checkpoint.iterdir() if path.name != MANIFEST]
    write_manifest(checkpoint, names)
    return _resume(folder)


def _read_store(folder: Path) -> object:
    store = FeatureStore(folder / "data")
    return [
        (one.id, one.speaker, one.phones, *(getattr(one, name).tolist() for name in _ARRAYS))
        for one in map(store.read, store.ids)
    ]


_ARRAYS = ("durations", "mel", "f0", "energy")


def _write_processed(folder: Path) -> None:
    small_tasks.make_processed(folder / "data" / "mini")
    small_tasks.write_voice_config(folder)


def _begin_training(folder: Path) -> object:
    config = load_config(folder / "exp_config.json", [f"preprocess.processed_dir={folder}/data"])
    data = load_data(config, collect_assets(config), ProcessRank(), torch.device("cpu"))
    return len(data.sampler)


def _write_tensorflowtts(folder: Path) -> None:
    tensorflowtts_originals.write(folder, tensorflowtts_originals.weights())


@torch.no_grad()
def _read_tensorflowtts(folder: Path) -> object:
    model = load_model(folder)
    out = model.network.infer(torch.tensor([[45, 42, 148]]), torch.tensor([3]))
    return model.mel, out.mel.tolist(), out.pitch.tolist()


def _write_dump(folder: Path) -> None:
    corpus = copy_corpus(folder / "LJSpeech", IDS[:3])
    add_durations(export(corpus, folder / "dump"), folder / "durations")


def _read_dump(folder: Path) -> object:
    processed, dump = folder / "data", folder / "dump"
    config = dump_config(dump, processed, aligner="imported")
    import_dump(config, "LJSpeech", dump, folder / "durations", n_cpus=1)
    return FeatureStore(processed / "LJSpeech").ids


_IN_DUMP = ("dump/*", "dump/*/*/*", "durations/*/*/*")
_IN_DATA = ("data/mini/*.json", "data/mini/features/*")
_IN_CHECKPOINTS, _STATES = f"{CHECKPOINTS}/*/*", f"{CHECKPOINTS}/*/t*"
TARGETS = {
    "recipe": Target(3, _write_recipe, ("*.json",), _read_config),
    "configuration": Target(4, _write_whole_config, ("*.json",), _read_config),
    "ljspeech": Target(2, _write_table, ("metadata.csv",), _read_table("ljspeech")),
    "folder": Target(3, _write_table, ("metadata.csv",), _read_table("folder")),
    "textgrid": Target(5, _write_textgrids, ("TextGrid/*",), _align, rejects=(AlignmentError,)),
    "sounds": Target(3, _write_sounds, ("*",), _read_sounds, rejects=(AudioError,)),
    # others may be cut without a sign of it
    "lengths of sounds": Target(
        *(3, _write_sounds, ("WAV_PCM*", "WAVEX*", "FLAC*"), _read_sounds, True),
        *((AudioError,), mutate_length),
    ),
    "text": Target(5, _write_text, ("*",), _read_texts, rejects=(InputError, UtteranceError)),
    "texts": Target(
        2, _write_text_table, ("*",), lambda path: read_input_texts(path / "texts.tsv")
    ),
    "ssml": Target(5, _write_ssml, ("*",), _read_ssml, rejects=(UtteranceError,)),
    "lexicon": Target(1, _write_lexicon, ("*",), _read_lexicon),
    "durations": Target(5, _write_durations, ("*",), _read_durations, rejects=(AlignmentError,)),
    "TensorFlowTTS voice": Target(2, _write_tensorflowtts, ("*",), _read_tensorflowtts),
    "TensorFlowTTS dump": Target(2, _write_dump, _IN_DUMP, _read_dump),
    "experiment": Target(6, _write_experiment, ("*.json", _IN_CHECKPOINTS), _speak, exact=True),
    "voice without checksums": Target(
        4, lambda folder: make_voice(folder) and None, ("*",), _speak, rejects=(UtteranceError,)
    ),
    "trainer state": Target(2, _write_run, (_IN_CHECKPOINTS,), _resume, exact=True),
    "trainer state without checksums": Target(2, _write_run, (_STATES,), _resume_unchecked),
    "shards": Target(3, _write_run, ("data/features/*.safetensors",), _read_store, exact=True),
    "processed data": Target(3, _write_processed, _IN_DATA, _begin_training),
}
