from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from models.synthesizer.speech import faded_pieces
from processors.metrics import checks
from processors.metrics.checks import Fault, check_clipping, check_silence, check_words, flat_tops
from processors.metrics.recognition.labelled_speech import LabelledSpeech, RecognisedWord
from processors.metrics.recognition.user_models import UserModels
from processors.metrics.records import NotApplicableError
from processors.metrics.registry import CHECKS
from tests.processors.spliced import TEXT, Recording

RATE = 22050


def voice(seconds: float, level: float = 0.1) -> np.ndarray:
    """Syllables, four a second, of a voice of 150 Hz: (S,) that begins and ends softly."""
    time = np.arange(round(seconds * RATE)) / RATE
    tone = sum(np.sin(2 * np.pi * 150 * k * time + k * k) / k for k in range(1, 12))
    edge = np.minimum(1, np.minimum(time, time[::-1]) / 0.05)
    wav = tone * edge * (1.2 - np.cos(2 * np.pi * 4 * time))
    return (level * wav / np.sqrt(np.mean(wav**2))).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(round(seconds * RATE), dtype=np.float32)


def speech(*parts: np.ndarray, text: str = "", language: str = "en", phones=()) -> LabelledSpeech:
    return LabelledSpeech(np.concatenate(parts), RATE, text, language, tuple(phones))


CORPUS = Path(__file__).parents[3] / "egs" / "_demo" / "LJSpeech-mini"
OF_SOUND = ["clipping", "silence"]
CLIPPED = {"LJ001-0096", "LJ003-0011", "LJ016-0117", "LJ042-0161"}  # before they were published


@pytest.fixture(scope="module")
def recordings():
    texts = {}
    for line in (CORPUS / "metadata.csv").read_text(encoding="utf-8").splitlines():
        texts[line.split("|")[0]] = line.split("|")[-1]
    return [
        LabelledSpeech(*soundfile.read(path, dtype="float32"), texts[path.stem], "en", id=path.stem)
        for path in sorted((CORPUS / "wavs").iterdir())
    ]


def flagged(spoken: LabelledSpeech, recorded: LabelledSpeech | None) -> list[str]:
    return [name for name in OF_SOUND if CHECKS[name].score(spoken, recorded) is not None]


def test_good_recordings_are_not_flagged(recordings):
    assert len(recordings) == 55
    for spoken in recordings:
        for recorded in (None, spoken):
            flags = flagged(spoken, recorded)
            assert flags == (["clipping"] if spoken.id in CLIPPED else []), spoken.id


def test_every_fault_put_into_a_recording_is_found(recordings):
    recorded = recordings[0]
    (wav,) = faded_pieces([recorded.wav], len(recorded.wav), RATE)
    middle = len(wav) // 2
    clipped = np.clip(wav * 1.4 / np.abs(wav).max(), -1, 1)
    faults = {"clipping": clipped, "silence": np.insert(wav, middle, silence(1.5))}
    for name, fault in faults.items():
        spoken = LabelledSpeech(fault.astype(np.float32), RATE, recorded.text, "en")
        assert name in flagged(spoken, recorded), name


@pytest.mark.parametrize("n_samples", [0, 1, 2, 10, 100, 500, 2205])
@pytest.mark.parametrize("kind", ["silence", "sound"])
def test_signals_of_any_length_can_be_checked(n_samples, kind):
    wav = np.zeros(n_samples) if kind == "silence" else np.sin(np.arange(n_samples) / 10)
    spoken = LabelledSpeech(wav.astype(np.float32), RATE, "Yes.", "en")
    for recorded in (None, spoken, speech(voice(2)), speech(silence(0))):
        flags = flagged(spoken, recorded)
        if kind == "silence" or n_samples == 0:
            assert flags == ["silence"]


def tone(hz: float, height: float, n_samples: int = RATE) -> np.ndarray:
    wav = height * np.sin(2 * np.pi * hz * np.arange(n_samples) / RATE)
    return (np.round(wav * 32768) / 32768).astype(np.float32)


@pytest.mark.parametrize("height", [1.0, 0.3])
def test_clipped_samples_are_counted(height):
    wav = np.clip(tone(441, 1.2, 500), -1, 1) * np.float32(height)  # 50 samples a period
    tops = flat_tops(wav)
    assert len(tops) == 20
    assert {top.samples for top in tops} <= {10, 11}
    assert tops[0].start == pytest.approx(np.arcsin(1 / 1.2) / (2 * np.pi) * 50, abs=1)
    n_samples = sum(top.samples for top in tops)
    assert check_clipping(speech(wav), None).startswith(
        f"{n_samples} clipped samples in 20 flat tops at {height:.2f} of full scale; the longest, "
    )


def test_what_is_beyond_full_scale_is_clipped():
    note = check_clipping(speech(voice(1, 0.9)), speech(voice(1)))
    assert "at 1.00 of full scale, recorded: 0;" in note


@pytest.mark.parametrize("hz", [50, 90, 140, 220, 350])
@pytest.mark.parametrize("height", [0.01, 0.1, 0.5, 1.0])
def test_round_tops_pass(hz, height):
    assert check_clipping(speech(tone(hz + 0.37, height)), None) is None


def test_two_short_flat_tops_pass_and_a_long_one_does_not():
    wav = voice(1)
    top = float(wav.max())
    wav[5000:5003] = top + 0.1
    wav[9000:9003] = top + 0.1
    assert check_clipping(speech(wav), None) is None

    wav[12000:12023] = top + 0.1
    assert "the longest, 23 samples, at 0.54 s" in check_clipping(speech(wav), None)


def test_silence_is_found_where_it_is():
    def spoken(before, inside, after):
        return speech(silence(before), voice(1), silence(inside), voice(1), silence(after))

    recorded = spoken(0.1, 0.2, 0.1)
    assert check_silence(spoken(0.1, 0.6, 0.3), recorded) is None
    before = check_silence(spoken(1.0, 0.2, 0.1), recorded)
    assert before == "1.0 s of silence before the speech, recorded: 0.1 s"
    assert check_silence(spoken(0.1, 0.2, 1.2), None) == "1.2 s of silence after the speech"
    inside = check_silence(spoken(0.1, 1.5, 0.1), recorded)
    assert inside == "1.5 s of silence at 1.08 s, longest recorded: 0.2 s"
    assert check_silence(spoken(1.0, 1.5, 0.1), None).count(";") == 1


def test_silence_that_was_recorded_passes():
    spoken = speech(silence(1.2), voice(1), silence(1.6), voice(1), silence(1.2))
    assert check_silence(spoken, spoken) is None
    assert check_silence(spoken, None) is not None


def test_half_a_second_more_than_recorded_or_usual_passes():
    def spoken(before, inside):
        return speech(silence(before), voice(1), silence(inside), voice(1))

    recorded = spoken(0.6, 1.0)  # the edges of a voice are silent, too
    assert check_silence(spoken(1.0, 1.4), recorded) is None
    assert check_silence(spoken(1.2, 1.4), recorded).startswith("1.2 s of silence before")
    assert check_silence(spoken(1.0, 1.6), recorded).startswith("1.6 s of silence at")
    assert check_silence(spoken(0.7, 1.1), None) is None
    assert check_silence(spoken(0.9, 1.1), None).startswith("0.9 s of silence before")
    assert check_silence(spoken(0.7, 1.3), None).startswith("1.3 s of silence at")


def test_noise_in_a_pause_is_no_sound():
    noise = 0.003 * np.random.default_rng(0).normal(size=len(silence(1.5))).astype(np.float32)
    note = check_silence(speech(voice(1), noise, voice(1)), None)
    assert note.startswith("1.5 s of silence at 0.9")


def test_no_sound_at_all_is_found():
    assert check_silence(speech(silence(2)), speech(voice(2))) == "nothing but silence, 2.0 s"
    assert check_silence(speech(silence(0)), None) == "no sound: 0 samples"


TEXT_HEARD = "she had your dark suit in greasy wash water all year"
WORDS = TEXT_HEARD.split()
SHORT = np.zeros(1600, dtype=np.float32)


@pytest.fixture(scope="module")
def recording():
    return Recording()


def of_text(wav, rate=22050, text=TEXT) -> LabelledSpeech:
    return LabelledSpeech(wav, rate, text, "en-us")


def test_a_recording_says_its_text(recording):
    assert check_words(of_text(recording.wav), None) is None


def test_skipped_words_are_named_with_their_place(recording):
    note = check_words(of_text(recording.without(2, 4)), None)
    assert note.startswith("skipped at 0.")
    assert note.endswith('s: "block books"')
    note = check_words(of_text(recording.without(12, 14)), of_text(recording.wav))
    assert note == 'skipped at the end: "printed book"'


def test_repeated_words_are_named_with_the_time_of_the_second(recording):
    note = check_words(of_text(recording.twice(7, 8)), None)
    second_s = recording.ends_s[7]
    assert note.startswith("repeated at ")
    assert note.endswith('s: "immediate"')
    assert float(note.split()[2]) == pytest.approx(second_s, abs=0.1)


def test_what_the_recording_does_as_well_is_no_fault(recording):
    cut = of_text(recording.without(2, 4))
    assert check_words(cut, cut) is None
    both = of_text(recording.without(2, 4)[: round(3.2 * 22050)])
    note = check_words(both, cut)
    assert "block" not in note
    assert "skipped at the end" in note


def test_speech_of_another_text_is_flagged(recording):
    text = "Nothing more was heard of the affair, although the lady declared that she had never."
    assert "skipped" in check_words(of_text(recording.wav, text=text), None)


def test_in_silence_no_word_is_found():
    assert check_words(of_text(SHORT, text="Two words."), None) == "none of its words is found"


def said(places: list[int]) -> list[RecognisedWord]:
    return [(place, 0.5 * number) for number, place in enumerate(places)]


@pytest.mark.parametrize(
    ("places", "faults"),
    [
        (range(11), []),
        ([0, 1, 2, 5, 6, 7, 8, 9, 10], [Fault("skipped", 3, 5, " at 1.50 s")]),
        ([0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9, 10], [Fault("repeated", 3, 5, " at 2.50 s")]),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8], [Fault("skipped", 9, 11, " at the end")]),
        ([2, 3, 4, 5, 6, 7, 8, 9, 10], [Fault("skipped", 0, 2, " at 0.00 s")]),
        ([0, *range(2, 11)], [Fault("skipped", 1, 2, " at 0.50 s")]),  # "had"
        ([0, 1, 2, 3, 4, 6, 7, 8, 9, 10], []),  # "in": two letters
        ([0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10], []),  # "in" again
        ([0, 1, 2, 3, 9, 5, 6, 7, 8, 9, 10], []),  # "suit" sounds like "all"
        ([0, 1, 2, 3, 0, 1, 1, *range(2, 11)], [Fault("repeated", 1, 4, " at 2.00 s")]),
        ([0, 1, 4, 8, 9, 10], [Fault("skipped", 2, 8, " at 1.00 s")]),  # all but a confused word
        ([0, 1, 2, 3, 4, 2, 5, 6, 7, 8, 9, 10], [Fault("repeated", 2, 5, " at 2.50 s")]),
    ],
)  # fmt: skip
def test_jumps_that_undo_each_other_and_few_letters_are_no_faults(places, faults):
    assert checks.faults_of(said(list(places)), WORDS) == faults


@pytest.mark.parametrize(
    ("heard", "faults"),
    [
        (TEXT_HEARD, []),
        ("she had your suit in greasy wash water all year", []),  # one word may be missed
        ("she had your greasy wash water all year", [Fault("skipped", 3, 6)]),
        ("she had your hat in wash water all year", []),  # 5 letters of 16, but 2 words of 4
        ("she had your greece he wash what are all year", []),  # 8 letters of 16
        ("she had your grease wash water all year", [Fault("skipped", 3, 7)]),
        ("she hat or dark shoot in greece we watch water are here", []),
        (TEXT_HEARD.replace("suit", "suit dark suit"), [Fault("repeated", 3, 5)]),
        (TEXT_HEARD + " all year", [Fault("repeated", 9, 11)]),
        (TEXT_HEARD.replace("suit", "suit suit"), []),
        (TEXT_HEARD.replace("suit", "suit and then"), []),
        ("", [Fault("skipped", 0, 11)]),
    ],
)  # fmt: skip
def test_errors_of_the_recogniser_are_no_faults(heard, faults):
    assert checks.faults_in(heard.split(), WORDS) == faults


def hearing(heard: str, **changes) -> LabelledSpeech:
    speech = LabelledSpeech(SHORT, 16000, "Een kop koffie met melk, graag.", "nl")
    return replace(speech, user_models=UserModels(recogniser=lambda *_: heard), **changes)


def test_in_other_languages_the_users_recogniser_is_believed():
    good, bad = hearing("een kop koffie met melk graag"), hearing("Een kop koffie.")
    assert check_words(good, None) is None
    assert check_words(bad, good) == 'skipped: "met melk graag"'
    assert check_words(bad, bad) is None


def test_recordings_without_transcripts_say_nothing_of_speech(tmp_path):
    (tmp_path / "a.txt").write_text("een kop koffie")
    bad = replace(hearing(""), id="a", user_models=UserModels(transcripts=tmp_path))
    recorded = replace(bad, user_models=UserModels(transcripts=tmp_path / "recorded"))
    assert check_words(bad, recorded) == 'skipped: "met melk graag"'


def test_it_does_not_apply_without_text_or_recogniser():
    fault = r"lacks a text .* in English, or in the language of"
    with pytest.raises(NotApplicableError, match=fault):
        check_words(LabelledSpeech(SHORT, 16000, "Een kop koffie.", "nl"), None)
    for text in ("...", "Say {T AH0 M EY1 T OW2}."):
        with pytest.raises(NotApplicableError, match="lacks a text"):
            check_words(LabelledSpeech(SHORT, 16000, text, "en"), None)
