import dataclasses
import shutil

import pytest
from safetensors.torch import load_file, save_file

from models.synthesizer.fingerprint import fingerprint, source_files
from models.synthesizer.synthesizer import Synthesizer
from modules.mel import MelConfig
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.models.synthesizer.test_vocoders import make_vocoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_voice(tmp_path_factory.mktemp("voice") / "v")


def digest(folder, vocoder=None, *overrides: str, **options: bool) -> str:
    return Synthesizer(folder, vocoder, overrides=overrides, **options).fingerprint()


def test_a_fingerprint_depends_on_every_fact_and_its_order():
    assert fingerprint("a", {"x": 1, "y": 2}) == fingerprint("a", {"y": 2, "x": 1})
    different = {fingerprint(*facts) for facts in (["a", "b"], ["b", "a"], ["ab"], ["a", "b", ""])}
    assert len(different) == 4


def test_the_same_voice_in_another_folder_has_the_same_fingerprint(folder, tmp_path):
    (folder / "lexicon.txt").write_text("WORD  W ER1 D\n")
    shutil.copytree(folder, tmp_path / "moved")
    assert digest(tmp_path / "moved") == digest(folder)
    (tmp_path / "moved" / "lexicon.txt").write_text("WORD  W AO1 D\n")
    assert digest(tmp_path / "moved") != digest(folder)


@pytest.mark.parametrize(
    "override",
    [
        "inference.griffin_lim_iterations=5",
        "inference.sentence_pause_s=0.5",
        "inference.max_phones=20",
        "preprocess.text.normalizer=none",
    ],
)
def test_a_setting_that_changes_the_speech_changes_the_fingerprint(folder, override):
    assert digest(folder, None, override) != digest(folder)


def test_other_weights_have_another_fingerprint(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "v")
    weights = load_file(tmp_path / "v" / "model.safetensors")
    weights["mel_linear.bias"] += 1e-6
    save_file(weights, tmp_path / "v" / "model.safetensors")
    assert digest(tmp_path / "v") != digest(folder)


def test_another_vocoder_has_another_fingerprint(folder, tmp_path):
    one = make_vocoder(tmp_path / "one")
    two = make_vocoder(tmp_path / "two", dataclasses.replace(MelConfig(), f_max=7600.0))
    digests = {digest(folder), digest(folder, one), digest(folder, two, resample=True)}
    assert len(digests) == 3


def test_code_that_changed_changes_the_fingerprint(folder, monkeypatch):
    before = digest(folder)
    monkeypatch.setattr("models.synthesizer.fingerprint._code_digest", lambda: "other code")
    assert digest(folder) != before


def test_code_lexicons_and_weights_that_text_is_read_with_belong_to_it():
    names = {path.name for path in source_files()}
    assert {"synthesizer.py", "_feed_forward.py", "cmudict.txt", "letter_to_sound.npz"} <= names
