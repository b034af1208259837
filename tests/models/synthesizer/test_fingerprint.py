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


def test_settings_and_vocoders_that_change_the_speech_change_the_fingerprint(folder, tmp_path):
    overrides = (
        "inference.griffin_lim_iterations=5",
        "inference.sentence_pause_s=0.5",
        "inference.max_phones=20",
        "preprocess.text.normalizer=none",
    )
    one = make_vocoder(tmp_path / "one")
    two = make_vocoder(tmp_path / "two", dataclasses.replace(MelConfig(), f_max=7600.0))
    digests = {digest(folder), digest(folder, one), digest(folder, two, resample=True)}
    digests |= {digest(folder, None, override) for override in overrides}
    assert len(digests) == 3 + len(overrides)


def test_other_weights_and_other_code_have_another_fingerprint(folder, tmp_path, monkeypatch):
    before = digest(folder)
    shutil.copytree(folder, tmp_path / "v")
    weights = load_file(tmp_path / "v" / "model.safetensors")
    weights["mel_linear.bias"] += 1e-6
    save_file(weights, tmp_path / "v" / "model.safetensors")
    assert digest(tmp_path / "v") != before
    monkeypatch.setattr("models.synthesizer.fingerprint._code_digest", lambda: "other code")
    assert digest(folder) != before


def test_code_lexicons_and_weights_that_text_is_read_with_belong_to_it():
    names = {path.name for path in source_files()}
    assert {"synthesizer.py", "_feed_forward.py", "cmudict.txt", "letter_to_sound.npz"} <= names
