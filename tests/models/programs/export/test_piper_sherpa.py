import dataclasses
import unicodedata
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest

from models.base.assets import Speaker
from models.programs.export import piper_sherpa
from models.programs.export.folder import open_voice
from models.programs.export.piper_sherpa import ids_of, merged_graph, piper_settings
from processors.text.g2p import lookup
from processors.text.voice_phones import vocabulary_of
from tests.models.programs.export.voices import SPEAKERS, published_sherpa, wav_of
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_waveglow
from utils.errors import InputError

SPOKEN = ["HH", "AH0", "L", "OW1"]


@pytest.fixture(scope="module")
def voice(home, vocoder):
    return open_voice(home, vocoder)


@pytest.fixture(scope="module")
def exported(voice, tmp_path_factory):
    target = tmp_path_factory.mktemp("exported") / "two"
    piper_sherpa.export_sherpa(voice, target)
    return target


@pytest.mark.parametrize(("mark", "end"), [([], "<.>"), (["<?>"], "<?>")])
def test_the_graph_starts_with_a_silence_and_ends_in_a_pause(voice, exported, mark, end):
    session = onnxruntime.InferenceSession(exported / "model.onnx")
    ids = [1]
    for i in ids_of(voice, [*SPOKEN, *mark]):
        ids += [0, i]
    inputs = {"input": np.array([[*ids, 0, 2]]), "input_lengths": np.array([len(ids) + 2])}
    inputs |= {"scales": np.array([0.667, 1.3, 0.8], np.float32), "sid": np.array([1])}
    (found,) = session.run(["output"], inputs)
    assert found.shape[:3] == (1, 1, 1)
    expected = wav_of(voice, ["<sil>", *SPOKEN, end], 1.3)
    np.testing.assert_allclose(found[0, 0, 0], expected, rtol=0, atol=1e-3)


def test_the_published_sherpa_onnx_speaks_as_the_network(voice, exported):
    tts = published_sherpa(exported)
    assert (exported / "cmudict.LICENSE").is_file()
    phones = ["<sil>", *lookup("the"), *lookup("fox"), "<.>"]
    for speed in (1.0, 0.8):
        found = tts.generate("the fox", sid=1, speed=speed)
        expected = wav_of(voice, phones, 1 / speed)
        assert found.sample_rate == voice.model.mel.sample_rate
        np.testing.assert_allclose(np.array(found.samples), expected, rtol=0, atol=1e-3)


def test_words_of_the_lexicon_have_the_phones_of_the_toolkit(voice, exported):
    words, ids = ((exported / f"{name}.txt").read_text() for name in ("lexicon", "tokens"))
    lexicon = dict(line.split(" ", 1) for line in words.splitlines())
    tokens = dict(line.rsplit(" ", 1) for line in ids.splitlines())
    assert len(lexicon) > 120_000
    years = (*lookup("nineteen"), *lookup("oh"), *lookup("five"))
    assert tuple(lexicon["1905"].split()) == years
    assert tuple(lexicon["42"].split()) == (*lookup("forty"), *lookup("two"))
    assert tokens[" "] == "0"
    for word in ("hello", "o'clock", "the"):
        phones = lexicon[word].split()
        assert tuple(phones) == lookup(word)
        assert [int(tokens[phone]) for phone in phones] == ids_of(voice, phones)
    assert int(tokens["?"]) == ids_of(voice, ["<?>"])[0]


def test_phones_that_were_not_trained_have_the_ids_of_the_nearest(voice):
    assets = voice.model.assets
    trained = frozenset(assets.vocabulary.symbols) - {"ZH", "<!>"}
    model = SimpleNamespace(assets=dataclasses.replace(assets, trained_phones=trained))
    few = voice._replace(model=model)
    assert ids_of(few, ["ZH"]) == ids_of(voice, ["Z"]) != ids_of(voice, ["ZH"])
    assert ids_of(few, ["<!>"]) == ids_of(voice, ["<.>"])


def test_a_voice_of_espeak_has_settings_for_piper(tmp_path):
    phones = vocabulary_of(["h", "ə", "l", "ˈoʊ", "ç"])
    folder = make_voice(
        tmp_path / "one", Speaker("anna", "en-us"), vocabulary=phones, phone_extractor="espeak"
    )
    espeak = open_voice(folder, "griffin_lim")
    settings = piper_settings(espeak)
    assert ["ˈ", "o", "ʊ"] in settings["vowel_clusters"]
    assert settings["phoneme_id_map"]["ˈoʊ"] == ids_of(espeak, ["ˈoʊ"])
    decomposed = unicodedata.normalize("NFD", "ç")
    assert settings["phoneme_id_map"][decomposed] == ids_of(espeak, ["ç"])
    assert settings["phoneme_id_map"]["."] == ids_of(espeak, ["<.>"])
    assert settings["speaker_id_map"] == {"anna": 0}
    with pytest.raises(InputError, match="this voice needs phone_extractor espeak"):
        piper_sherpa.export_sherpa(espeak, tmp_path / "sherpa")


def test_number_0_is_the_default_speaker(voice, exported, tmp_path):
    home = make_voice(tmp_path / "two", *SPEAKERS, default="bert")  # with the weights of `voice`
    chosen = open_voice(home, voice.vocoder.home)
    assert piper_settings(chosen)["speaker_id_map"] == {"bert": 0, "anna": 1}
    assert piper_settings(voice)["speaker_id_map"] == {"anna": 0, "bert": 1}
    ids = ids_of(voice, SPOKEN)
    inputs = {"input": np.array([ids]), "input_lengths": np.array([len(ids)])}
    inputs["scales"] = np.ones(3, np.float32)

    def wavs(session):
        return [session.run(["output"], inputs | {"sid": np.array([sid])})[0] for sid in (0, 1)]

    anna, bert = wavs(onnxruntime.InferenceSession(exported / "model.onnx"))
    first, second = wavs(onnxruntime.InferenceSession(merged_graph(chosen).SerializeToString()))
    assert np.array_equal(first, bert)
    assert np.array_equal(second, anna)
    assert anna.shape != bert.shape or not np.allclose(anna, bert)


def test_a_voice_of_one_speaker_has_no_input_for_speakers(voice):
    alone = SimpleNamespace(speakers=voice.model.speakers[:1], assets=voice.model.assets)
    graph = merged_graph(voice._replace(model=alone))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    assert [tensor.name for tensor in session.get_inputs()] == ["input", "input_lengths", "scales"]


def test_a_voice_of_arpabet_has_settings_for_piper(voice):
    settings = piper_settings(voice)
    ids = settings["phoneme_id_map"]
    for sign, phones in {"ˈoʊ": ["OW1"], "ɑːɹ": ["AA0", "R"], "tʃ": ["CH"]}.items():
        assert ids[sign] == ids_of(voice, phones)
    assert ids["ː"] == [0]  # of a vowel that is not in the table
    assert ["t", "ʃ"] in settings["vowel_clusters"]
    assert settings["espeak"] == {"voice": "en-us"}
    assert settings["inference"]["noise_scale"] == 0.667


@pytest.mark.parametrize(
    ("language", "code"),
    [("en-gb-scotland", "en_GB"), ("de", "de_DE"), ("cs", "cs_CZ"), ("nb", "no_NO")],
)
def test_two_voices_have_names_by_which_piper_knows_them(tmp_path, language, code):
    speaker = Speaker("anna", language)
    folder = make_voice(tmp_path / "my-voice 2", speaker, phone_extractor="espeak")
    voice = open_voice(folder, "griffin_lim")
    assert piper_sherpa.piper_name(voice) == f"{code}-my_voice_2-medium"
    settings = piper_settings(voice)
    assert settings["language"]["code"] == code
    assert settings["language"]["family"] == code[:2]
    assert (settings["dataset"], settings["audio"]["quality"]) == ("my_voice_2", "medium")
    assert settings["espeak"] == {"voice": language}


def test_voices_that_the_formats_cannot_hold_are_refused(voice, tmp_path):
    speakers = Speaker("anna", "en-us"), Speaker("bert", "de")
    mixed = make_voice(tmp_path / "mixed", *speakers, phone_extractor="espeak")
    with pytest.raises(InputError, match="Piper has one language per voice"):
        piper_sherpa.export_piper(open_voice(mixed, "griffin_lim"), tmp_path / "out")
    noisy = open_voice(voice.model.home, make_waveglow(tmp_path / "waveglow"))
    with pytest.raises(InputError, match="a vocoder without noise"):
        merged_graph(noisy)
    assert not (tmp_path / "out").exists()
