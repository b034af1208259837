"""Exported voices in the published piper-tts."""

import json

import numpy as np
import pytest

from models.checkpoint.loading import load_model
from models.programs.export.folder import open_voice
from models.programs.export.piper_sherpa import export_piper
from models.synthesizer.synthesizer import Synthesizer
from processors.text.espeak import is_ipa
from processors.text.voice_phones import arpabet_vocabulary, vocabulary_of
from tests.models.programs.export.voices import SPEAKERS, wav_of
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.processors.text.test_espeak import speak

piper = pytest.importorskip("piper")
from piper.config import SynthesisConfig  # noqa: E402

WORDS = "the quick brown fox jumps over a lazy dog hello voice boy thank you another large church "
WORDS += "trombones hundred cornets measure thing judge away yellow pure there near poor bird"
OTHERS = "ɓɗʄɠʛɲɳɴɻɽɾʀʁɱɭɬɮɫʎʟʋɰɥɦħʕʔʡʢʘǀǃǂǁβɸçʝɣχɕʑɖʈɟɢʂʐɧɺ"  # phones that no text has


def make_espeak_voice(folder):
    """An untrained voice with the phones of some words."""
    phones = {phone for word in WORDS.split() for phone in speak("en-us", [word])}
    phones = {phone for said in phones for phone in said} | {"ˈoʊ"}
    assert all(map(is_ipa, phones))
    n_missing = len(arpabet_vocabulary()) - len(vocabulary_of(phones))
    vocabulary = vocabulary_of({*phones, *OTHERS[:n_missing]})  # as large as that of ARPAbet
    return make_voice(folder, *SPEAKERS, vocabulary=vocabulary, phone_extractor="espeak")


@pytest.fixture(scope="module")
def synthesizer(vocoder, tmp_path_factory):
    folder = make_espeak_voice(tmp_path_factory.mktemp("voice") / "two")
    return Synthesizer(folder, vocoder, "cpu")


@pytest.fixture(scope="module")
def folder(synthesizer, tmp_path_factory):
    target = tmp_path_factory.mktemp("exported") / "two"
    export_piper(open_voice(synthesizer.model.home, synthesizer.vocoder_name), target)
    return target


@pytest.fixture(scope="module")
def voice(folder):
    return piper.PiperVoice.load(folder / "en_US-two-medium.onnx")


def phones_of(voice, vocabulary, phonemes):
    """Symbols behind Piper's ids, without what stands between them."""
    ids = [i for phoneme in phonemes for i in voice.config.phoneme_id_map.get(phoneme, [])]
    return [vocabulary.symbols[i - 3] for i in ids if i >= 3]


@pytest.mark.parametrize("length_scale", [1, 1.4])
def test_the_published_package_speaks_as_the_network(voice, synthesizer, length_scale):
    opened = open_voice(synthesizer.model.home, synthesizer.vocoder_name)
    settings = SynthesisConfig(speaker_id=1, length_scale=length_scale, normalize_audio=False)
    chunks = list(voice.synthesize("Hello voice, thank you. The lazy dog?", settings))
    assert len(chunks) == 2
    for chunk in chunks:
        symbols = ["<sil>", *phones_of(voice, opened.model.vocabulary, chunk.phonemes)]
        expected = wav_of(opened, symbols, length_scale).clip(-1, 1)
        np.testing.assert_allclose(chunk.audio_float_array, expected, rtol=0, atol=1e-3)


def test_phones_pauses_and_speakers_are_those_of_the_toolkit(voice, synthesizer, folder):
    vocabulary = synthesizer.model.vocabulary
    for text in ("Hello voice.", "The lazy dog, a large church?", "Thank you!"):
        [phonemes] = voice.phonemize(text)
        [[spoken]] = synthesizer._reader(text, "en-us")
        assert ["<sil>", *phones_of(voice, vocabulary, phonemes)] == [*spoken.phones]
    settings = json.loads((folder / "en_US-two-medium.onnx.json").read_text())
    assert settings["speaker_id_map"] == {"anna": 0, "bert": 1}
    assert (folder / "LICENSE").is_file()


def test_a_voice_of_arpabet_has_the_nearest_phones(home, vocoder, tmp_path):
    export_piper(open_voice(home, vocoder), tmp_path / "out")
    arpabet = piper.PiperVoice.load(tmp_path / "out" / "en_US-two-medium.onnx")
    [phonemes] = arpabet.phonemize("Hello, voice of a church!")
    said = " ".join(phones_of(arpabet, load_model(home).vocabulary, phonemes))
    assert said == "HH AH0 L OW1 <,> V OY1 S AH0 V AH0 CH ER1 CH <!>"
    assert len(list(arpabet.synthesize("Hello."))) == 1
