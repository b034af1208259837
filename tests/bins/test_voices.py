from models.base.assets import Speaker
from tests.commands import call
from tests.models.synthesizer.test_synthesizer import make_voice


def lines_of(capsys):
    call("voices")
    return capsys.readouterr().out.splitlines()


def test_each_voice_is_a_line_and_one_that_names_its_speakers(tmp_path, monkeypatch, capsys):
    line = next(line for line in lines_of(capsys) if line.startswith("kathleen"))
    assert line.startswith("kathleen  en-us  1 speaker  9 MB  licence cc0-1.0  ")
    assert line.endswith("egs/_voices/kathleen")
    monkeypatch.setattr("models.voices.FOLDERS", (tmp_path,))
    speakers = Speaker("anna", "en-us"), Speaker("bert", "en-us"), Speaker("carl", "en-us")
    make_voice(tmp_path / "three", *speakers, default="bert")
    make_voice(tmp_path / "tiny")
    three, names, tiny, name = lines_of(capsys)
    assert three.startswith("three  en-us  3 speakers  ")
    assert names == "    anna, bert (default), carl"
    assert tiny.startswith("tiny  en-us  1 speaker  ")
    assert name == "    one"
