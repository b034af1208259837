import json
from dataclasses import asdict, replace

import pytest

from models.base.assets import Assets, Speaker
from modules.mel import MelConfig
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from processors.text.voice_phones import arpabet_vocabulary
from utils.errors import InputError

STAT = Stat(mean=200.0, std=30.0, min=80.0, max=400.0, count=7)
ASSETS = Assets(
    mel=MelConfig(hop_length=200),
    vocabulary=arpabet_vocabulary(),
    speakers=(Speaker("zoe", "en-gb"), Speaker("anna", "nl")),
    stats=CorpusStats({"anna": SpeakerStats(STAT, STAT, STAT, STAT, seconds=3.5)}),
    lexicon="arion  AH0 R AY1 AH0 N\n",
    trained_phones=frozenset({"AH0", "R", "<.>"}),
)


def test_assets_come_back_as_they_were(tmp_path):
    ASSETS.save(tmp_path)
    assert Assets.load(tmp_path) == ASSETS
    names = ("audio", "vocabulary", "speakers", "stats", "trained_phones")
    files = {*(f"{name}.json" for name in names), "lexicon.txt"}
    assert {path.name for path in tmp_path.iterdir()} == files
    replace(ASSETS, lexicon=None).save(tmp_path)  # that of an earlier run is removed
    assert Assets.load(tmp_path).lexicon is None


def test_a_vocoder_needs_only_a_mel_definition(tmp_path):
    Assets(MelConfig()).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["audio.json"]
    assert Assets.load(tmp_path) == Assets(MelConfig())


def test_a_mel_definition_from_before_its_scale_has_slaneys(tmp_path):
    plain = asdict(MelConfig())
    del plain["scale"]
    (tmp_path / "audio.json").write_text(json.dumps(plain))
    assert Assets.load(tmp_path).mel == MelConfig(scale="slaney")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("audio.json", {}),
        ("audio.json", asdict(MelConfig()) | {"scale": "htq"}),
        ("audio.json", []),
        ("audio.json", asdict(MelConfig()) | {"padding": "centve"}),
        ("audio.json", asdict(MelConfig()) | {"sample_rate": "16000"}),
        ("audio.json", asdict(MelConfig()) | {"hop_length": 0}),
        ("audio.json", asdict(MelConfig()) | {"log_floor": 0}),
        ("audio.json", asdict(MelConfig()) | {"hop": 3}),
        ("vocabulary.json", ["AA0"]),
        ("vocabulary.json", {"<pad>": 0}),
        ("vocabulary.json", ["<pad>", 3]),
        ("speakers.json", [{"nom": "anna"}]),
        ("speakers.json", [{"name": 225, "language": "en-gb"}]),
        ("speakers.json", [{"name": "anna", "language": "nl"}] * 2),
        ("speakers.json", {"name": "anna"}),
        ("stats.json", {}),
        ("trained_phones.json", {"AH0": 3}),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content):
    ASSETS.save(tmp_path)
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(InputError, match=name):
        Assets.load(tmp_path)


def test_missing_assets_and_a_missing_vocabulary_are_errors_that_name_the_folder(tmp_path):
    with pytest.raises(InputError, match=rf"{tmp_path}/audio\.json: No such file"):
        Assets.load(tmp_path)
    assert ASSETS.required_vocabulary(tmp_path) is ASSETS.vocabulary
    with pytest.raises(InputError, match=f"^{tmp_path}: no vocabulary.json, .* run stage 1 again"):
        replace(ASSETS, vocabulary=None).required_vocabulary(tmp_path)


def test_a_model_can_say_the_phones_it_was_trained_on_or_else_its_vocabulary():
    assert ASSETS.known_phones == {"AH0", "R", "<.>"}
    assert ASSETS.with_phones(frozenset({"OY1", "ʃ"})).known_phones == {"AH0", "R", "<.>", "OY1"}
    old = replace(ASSETS, trained_phones=None)
    assert old.known_phones == set(arpabet_vocabulary().symbols)
    assert old.with_phones(frozenset({"OY1"})) == old
