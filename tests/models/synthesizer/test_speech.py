import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from models.synthesizer.speech import Speech
from tests.models.synthesizer.speeches import make_speech
from utils.errors import InputError


def hello() -> Speech:
    return make_speech(("<sil>", "HH", "AY", "<.>"), (1, 2, 3, 1))


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".mp3"])
def test_speech_is_saved_in_the_format_of_its_name(tmp_path, suffix):
    speech = replace(hello(), sample_rate=16000)
    speech.save(tmp_path / "new" / f"speech{suffix}")
    info = soundfile.info(tmp_path / "new" / f"speech{suffix}")
    assert info.samplerate == 16000
    assert f".{info.format.lower()}" == suffix
    if suffix in (".wav", ".flac"):
        wav, _ = soundfile.read(tmp_path / "new" / f"speech{suffix}", dtype="float32")
        assert np.abs(wav - speech.wav).max() < 1 / 32000


def test_a_file_of_speech_holds_its_tag(tmp_path):
    for tag in ("Synthetic speech; model: choir", ""):
        replace(hello(), tag=tag).save(tmp_path / "a.wav")
        assert soundfile.SoundFile(tmp_path / "a.wav").comment == tag


def test_an_unknown_audio_format_names_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"a\.aac: unknown audio format; .* one of \.wav, \.flac"):
        hello().save(tmp_path / "a.aac")
    with pytest.raises(InputError, match="None: unknown audio format; expected the path of a file"):
        hello().save(None)
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_player_of_the_wav():
    speech = hello()
    encoded = re.fullmatch(
        r'<audio controls src="data:audio/wav;base64,(.+)"></audio>', speech._repr_html_()
    )
    wav, rate = soundfile.read(io.BytesIO(base64.b64decode(encoded[1])), dtype="float32")
    assert rate == speech.sample_rate
    assert np.abs(wav - speech.wav).max() < 1 / 32000
