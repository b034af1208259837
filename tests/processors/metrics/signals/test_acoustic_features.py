import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.synthesizer import Synthesizer
from processors.metrics.signals.acoustic_features import AcousticFeatures, encode_speaker
from tests.processors.metrics.packages import skip_without
from tests.processors.utterances import AH, EE, RATE, sing


def tone(hz: float, seconds: float, level: float = 0.5) -> np.ndarray:
    wav = level * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)
    return wav.astype(np.float32)


def inside(voice: AcousticFeatures, values: np.ndarray) -> np.ndarray:
    """The values of the frames in the sound, 50 ms from its ends."""
    start, end = voice.sound.start, voice.sound.stop
    return values[start + 10 : end - 10]


def test_frames_come_every_5_ms_from_50_ms_before_to_50_ms_after():
    voice = AcousticFeatures(tone(200, 1.0), RATE)
    assert voice.times_s[[0, 10, 20]].tolist() == pytest.approx([-0.05, 0, 0.05])
    assert voice.times_s[-1] == pytest.approx(1.045)
    assert len(voice.energy) == len(voice.f0) == len(voice.cepstra) == voice.n_frames == 220
    assert voice.cepstra.shape[1] == 24


@pytest.mark.parametrize("level", [0.5, 0.05])
def test_energy_is_the_level_in_db(level):
    voice = AcousticFeatures(tone(200, 0.5, level) + np.float32(0.3), RATE)
    expected = 20 * np.log10(level / np.sqrt(2))
    assert inside(voice, voice.energy) == pytest.approx(expected, abs=0.02)
    assert voice.energy.min() == pytest.approx(voice.energy.max() - 40)


def test_energy_is_seen_through_a_window_of_25_ms():
    wav = np.zeros(RATE, dtype=np.float32)
    wav[RATE // 2] = 0.5
    voice = AcousticFeatures(wav, RATE)
    mean_square_db = 20 * np.log10(0.5) - 10 * np.log10(0.0125 * RATE)  # a Hann window is half full
    assert voice.energy.max() == pytest.approx(mean_square_db, abs=0.05)
    louder = voice.times_s[voice.energy > voice.energy.min()]
    assert louder == pytest.approx([0.49, 0.495, 0.5, 0.505, 0.51])


def test_pitch_is_at_the_times_of_the_frames():
    wav = np.concatenate([np.zeros(4000), tone(200, 0.5), tone(300, 0.5)]).astype(np.float32)
    voice = AcousticFeatures(wav, RATE)
    before, at_200, at_300 = (
        voice.f0[(voice.times_s > low) & (voice.times_s < low + 0.15)] for low in (0.05, 0.4, 1.0)
    )
    assert not before.any()
    assert at_200 == pytest.approx(200, rel=1e-3)
    assert at_300 == pytest.approx(300, rel=1e-3)


def test_sound_is_where_it_is_not_silent():
    noise = 1e-4 * np.random.default_rng(0).normal(size=16000)  # 70 dB below
    noise[4000:8000] += tone(200, 0.25)
    voice = AcousticFeatures(noise.astype(np.float32), RATE)
    start, end = voice.sound.start, voice.sound.stop
    assert voice.times_s[start] == pytest.approx(0.25, abs=0.013)
    assert voice.times_s[end - 1] == pytest.approx(0.5, abs=0.013)


SOUNDLESS = {
    **{"empty": np.zeros(0), "sample": np.zeros(1), "constant": np.full(100, 0.7)},
    **{"nan": np.full(3000, np.nan), "infinity": np.append(sing(), np.inf), "quiet": 1e-6 * sing()},
}


@pytest.mark.parametrize("kind", SOUNDLESS)
def test_what_is_empty_silent_or_no_number_has_no_sound(kind):
    voice = AcousticFeatures(SOUNDLESS[kind].astype(np.float32), RATE)
    assert voice.sound == slice(0, 0)
    assert len(voice.f0) == len(voice.energy) == voice.n_frames


def test_cepstra_are_those_of_the_sound_at_any_level_and_place():
    wav = sing()
    voice = AcousticFeatures(wav, RATE)
    louder = AcousticFeatures(np.pad(3 * wav, (80 * 50, 999)), RATE)
    assert louder.sound == slice(voice.sound.start + 50, voice.sound.stop + 50)
    theirs, ours = (each.cepstra[each.sound] for each in (voice, louder))
    assert ours == pytest.approx(theirs, abs=0.01)


def test_cepstra_tell_vowels_apart_and_hardly_pitches():
    vowel, other = ((each._replace(seconds=0.5, glide=1.0),) for each in (AH, EE))
    wavs = sing(vowel), sing(vowel, pitch=1.2), sing(other)
    voices = (AcousticFeatures(wav, RATE) for wav in wavs)
    ah, ah_higher, ee = (inside(v, v.cepstra).mean(axis=0) for v in voices)  # (24,)
    assert np.linalg.norm(ee - ah) > 5 * np.linalg.norm(ah_higher - ah)


def test_another_rate_is_computed_once():
    voice = AcousticFeatures(sing(), RATE, phones=(), encoder=lambda _wav, rate: np.array([rate]))
    assert voice.at(RATE) is voice
    lower = voice.at(8000)
    assert lower.embedding == 8000
    assert lower is voice.at(8000)
    assert lower.sample_rate == 8000
    assert len(lower.wav) == len(voice.wav) // 2
    assert abs(lower.sound.start - voice.sound.start) <= 1
    assert abs(lower.sound.stop - voice.sound.stop) <= 1


DEMO = Path(__file__).parents[4] / "egs" / "_demo" / "LJSpeech-mini"
TEXT = "in being comparatively modern."  # of the recording LJ001-0002


def recording(id: str) -> tuple[np.ndarray, int]:
    return soundfile.read(DEMO / "wavs" / f"{id}.flac", dtype="float32")


@pytest.fixture(scope="module")
def embedding() -> np.ndarray:
    skip_without("similarity")
    return encode_speaker(*recording("LJ001-0002"))


def test_two_sentences_by_one_speaker_are_closer_than_one_sentence_by_two(embedding):
    other = encode_speaker(*recording("LJ001-0008"))
    speech = Synthesizer("kathleen")(TEXT)
    kathleen = encode_speaker(speech.wav, speech.sample_rate)
    assert embedding @ other > 0.75
    assert embedding @ kathleen < embedding @ other - 0.1


def test_an_embedding_has_length_1_and_depends_neither_on_the_level_nor_on_silence(embedding):
    wav, rate = recording("LJ001-0002")
    assert embedding.shape == (256,)
    assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-5)
    assert embedding @ encode_speaker(0.1 * wav, rate) > 0.999
    assert embedding @ encode_speaker(np.pad(wav, 2 * rate), rate) > 0.99


@pytest.mark.usefixtures("embedding")
def test_silence_less_than_a_second_and_nan_have_none():
    wav, rate = recording("LJ001-0002")
    assert encode_speaker(np.zeros(2 * rate, dtype=np.float32), rate) is None
    assert encode_speaker(wav[:rate], rate) is None
    assert encode_speaker(np.full_like(wav, np.nan), rate) is None
    assert "webrtcvad" not in sys.modules  # the voice activity detection of the package
