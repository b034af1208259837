"""SSML, measured in the speech of a small voice."""

import numpy as np
import pytest

from models.base.assets import Speaker
from models.synthesizer.synthesizer import Synthesizer
from processors.text.markup.ssml import Ssml
from tests.models.synthesizer.test_synthesizer import make_voice, rms
from tests.models.synthesizer.test_vocoders import make_vocoder
from utils.errors import InputError


@pytest.fixture(scope="module")
def voice(tmp_path_factory):
    folder = tmp_path_factory.mktemp("voice")
    return Synthesizer(make_voice(folder / "a"), make_vocoder(folder / "vocoder"))


def say(voice, content, **settings):
    return voice(Ssml(f"<speak>{content}</speak>"), **settings)


def frames(speech, word):
    """First frame of a word, and one past its last."""
    timed = next(timed for timed in speech.words if timed.text == word)
    return round(timed.start_s / speech.frame_s), round(timed.end_s / speech.frame_s)


def sound(speech, word):
    start, end = frames(speech, word)
    hop = len(speech.wav) // int(speech.durations.sum())
    return speech.wav[start * hop : end * hop]


def pause_after(speech, word):
    """Frames of all pauses between a word and the next."""
    _, end = frames(speech, word)
    following = [round(w.start_s / speech.frame_s) for w in speech.words]
    return next((start for start in following if start >= end), int(speech.durations.sum())) - end


PLAIN = "The very long story was told."


def marked(start, end):
    return f"The {start}very long{end} story was told."


def test_a_document_without_marks_sounds_as_its_text(voice):
    speech, plain = say(voice, "<p>One, two.</p>"), voice("One, two.")
    assert np.array_equal(speech.wav, plain.wav)
    assert (speech.phone_names, speech.text) == (plain.phone_names, "One, two.")


@pytest.mark.parametrize("text", ["The cat, {K AE1 T}, it's 5 kg. So (it) is!", "1 and 2"])
def test_marks_everywhere_change_no_phone(voice, text):
    words = text.replace("{K AE1 T}", "{K_AE1_T}").split()
    content = " ".join(f'<mark name="m{i}"/>{word}' for i, word in enumerate(words))
    content = content.replace("_", " ")
    content = content.replace('<mark name="m5"/>kg', "kg")  # a mark would part it from its number
    assert say(voice, content).phone_names == voice(text).phone_names


def test_rate_changes_the_durations_of_its_phones_alone_and_rates_and_the_setting_multiply(voice):
    speech, plain = say(voice, marked('<prosody rate="25%">', "</prosody>")), voice(PLAIN)
    assert speech.phone_names == plain.phone_names
    for word in ("The", "story", "was", "told"):
        assert np.diff(frames(speech, word)) == np.diff(frames(plain, word))
    for word in ("very", "long"):
        ratio = np.diff(frames(speech, word)) / np.diff(frames(plain, word))
        assert ratio == pytest.approx(4, rel=0.1)
    content = marked('<prosody rate="50%">', '<prosody rate="50%"> old</prosody></prosody>')
    speech, plain = say(voice, content, duration_control=2.0), voice(PLAIN.replace("g ", "g old "))
    words = "was", "very", "old"
    ratios = [np.diff(frames(speech, word)) / np.diff(frames(plain, word)) for word in words]
    assert np.ravel(ratios) == pytest.approx([2, 4, 8], rel=0.15)


def test_pitch_changes_the_f0_of_its_phones_alone(voice):
    speech, plain = say(voice, marked('<prosody pitch="+6st">', "</prosody>")), voice(PLAIN)
    assert speech.durations.tolist() == plain.durations.tolist()
    start, end = frames(plain, "very")[0], frames(plain, "long")[1]
    ratio = speech.f0 / plain.f0
    assert ratio[start:end] == pytest.approx(2**0.5, rel=1e-3)
    assert np.delete(ratio, np.s_[start:end]) == pytest.approx(1, rel=1e-3)
    assert not np.array_equal(speech.mel, plain.mel)


@pytest.mark.parametrize(("volume", "db"), [("-12dB", -12), ("loud", 3), ("silent", None)])
def test_volume_changes_the_level_of_its_words_alone(voice, volume, db):
    speech, plain = say(voice, marked(f'<prosody volume="{volume}">', "</prosody>")), voice(PLAIN)
    level = rms(sound(speech, "long")) / rms(sound(plain, "long"))
    assert level == pytest.approx(0 if db is None else 10 ** (db / 20), rel=0.02, abs=0.05)
    assert sound(speech, "told") == pytest.approx(sound(plain, "told"), abs=1e-6)


def test_emphasis_is_slower_and_higher_and_can_be_reduced(voice):
    plain = voice(PLAIN)
    start, end = frames(plain, "very")[0], frames(plain, "long")[1]
    for level, slower, higher in (("strong", 1.25, 1.15), ("reduced", 0.9, 0.95)):
        speech = say(voice, marked(f'<emphasis level="{level}">', "</emphasis>"))
        first, last = frames(speech, "very")[0], frames(speech, "long")[1]
        assert (last - first) / (end - start) == pytest.approx(slower, rel=0.05)
        f0 = np.median(speech.f0[first:last]) / np.median(plain.f0[start:end])
        assert f0 == pytest.approx(higher, rel=0.03)


@pytest.mark.parametrize("seconds", [0, 0.02, 0.1, 0.35, 2])
@pytest.mark.parametrize("text", ["One {} two", "One, {} two", "One. {} Two", "One {} ... two. {}"])
def test_a_break_lasts_its_time_within_a_hop_whatever_the_pauses_there(voice, text, seconds):
    content = text.replace("{}", f'<break time="{round(1000 * seconds)}ms"/>')
    for slower in (1.0, 2.0):
        speech = say(voice, content, duration_control=slower)
        first, second = (word.text for word in speech.words)
        words = (first, second) if text.endswith("{}") else (first,)
        for word in words:
            assert abs(pause_after(speech, word) * speech.frame_s - seconds) <= speech.frame_s
        sizes = len(speech.wav), len(speech.f0), speech.mel.shape[1]
        T = int(speech.durations.sum())
        assert sizes == (T * 256, T, T)


def test_breaks_add_up_before_the_first_word_and_paragraphs_and_sentences_have_pauses(voice):
    speech = say(voice, '<break time="1s"/><break time="500ms"/>One.')
    assert speech.words[0].start_s == pytest.approx(1.5, abs=speech.frame_s)
    start = frames(speech, "One")[0]
    leading = voice("One.").durations[0]
    assert np.abs(speech.wav[: (start - leading) * 256]).max() == 0
    speech = say(voice, "<p>One</p><p><s>two</s><s>three</s></p>")
    assert pause_after(speech, "one" if speech.words[0].text == "one" else "One") == 65  # 0.75 s
    assert pause_after(speech, "two") == pause_after(voice("Two. Three."), "Two")
    assert [s.text for s in speech.sentences] == ["One", "two", "three"]


def test_words_are_said_as_their_elements_say(voice):
    content = (
        'Say <phoneme alphabet="ipa" ph="təˈmɑːtoʊ">tomato</phoneme>,'
        ' <phoneme alphabet="arpabet" ph="HH AY1">hi</phoneme>,'
        ' <sub alias="doctor">Dr</sub>\'s <say-as interpret-as="characters">cat</say-as>'
    )
    speech = say(voice, content)
    spoken = "Say {T AH0 M AA1 T OW0}, {HH AY1}, doctor's C A T"
    assert speech.phone_names == voice(spoken).phone_names
    words = [word.text for word in speech.words]
    assert words == ["Say", "tomato", "hi", "doctor's", "C", "A", "T"]
    assert speech.text == speech.sentences[0].text == "Say tomato, hi, Dr's cat"


def test_marks_have_the_times_at_which_they_are_reached(voice):
    content = (
        '<mark name="start"/>One <mark name="in"/>two<mark name="end"/><break time="1s"/>'
        '<mark name="after"/> three. <mark name="next"/> Four.<break time="1s"/><mark name="last"/>'
    )
    speech = say(voice, content)
    times = {word.text: word for word in speech.words}
    expected = {
        "start": times["One"].start_s,
        "in": times["two"].start_s,
        "end": times["two"].end_s,
        "after": times["three"].start_s,
        "next": times["Four"].start_s,
        "last": speech.seconds,
    }
    assert dict(speech.marks) == pytest.approx(expected)
    early = say(voice, '<mark name="a"/><break time="1s"/><mark name="b"/>One.<mark name="c"/>')
    ends = early.words[0].start_s, early.words[0].end_s
    assert [*early.marks] == [("a", 0), ("b", ends[0]), ("c", ends[1])]


LONG = (
    '<p>It <prosody rate="slow" volume="soft">was <mark name="a"/>so</prosody>. Was it?</p>'
    '<break time="10ms"/><p>Yes, <break time="300ms"/>in <emphasis>1813</emphasis>'
    ' <prosody pitch="high">my dear</prosody>.</p><break time="200ms"/><mark name="b"/>'
)


def test_pieces_are_those_of_the_whole_with_the_same_times(voice):
    speech, pieces = say(voice, LONG), voice.generate(Ssml(f"<speak>{LONG}</speak>"))
    assert rms(np.concatenate([*pieces]) - speech.wav) < 0.01 * rms(speech.wav)
    for name in ("words", "sentences", "marks"):
        assert tuple(getattr(pieces, name)) == getattr(speech, name)


def test_a_sentence_that_is_split_keeps_its_marks(voice):
    overrides = ["inference.max_phones=30"]
    short = Synthesizer(voice.model.folder, voice.vocoder_name, overrides=overrides)
    plain = "word, and then and then " * 5
    content = plain.replace("and", "<mark name='a'/>and")
    content = content.replace("then", "<prosody volume='-20dB'>then</prosody>")
    speech = say(short, content)
    assert speech.phone_names == short(plain).phone_names
    starts = [word.start_s for word in speech.words if word.text == "and"]
    assert [mark.time_s for mark in speech.marks] == pytest.approx(starts)
    assert rms(sound(speech, "then")) < 0.2 * rms(sound(short(plain), "then"))


def test_a_language_is_read_by_its_front_end_in_a_clause_of_its_own(tmp_path):
    folder = make_voice(tmp_path, Speaker("anna", "en-us"), Speaker("bert", "de"))
    voice = Synthesizer(folder, overrides=["preprocess.text.phone_extractor=espeak"])
    content = 'Say <lang xml:lang="de-DE">ja</lang> now.'
    with pytest.raises(InputError, match="line 1, column 12: language 'fr': this voice speaks"):
        voice(Ssml(f"<speak>{content.replace('de-DE', 'fr')}</speak>", strict=True), speaker="anna")
    speech = say(voice, content, speaker="anna")
    german = voice("ja", speaker="bert").phone_names[1:-1]
    first = speech.phone_names.index("<,>") + 2
    assert speech.phone_names[first : first + len(german)] == german
    assert [word.text for word in speech.words] == ["Say", "ja", "now"]


def test_what_cannot_be_spoken_is_refused(voice):
    with pytest.raises(InputError, match="no word to say in the text"):
        say(voice, '<break time="1s"/><mark name="a"/> ... ')
    with pytest.raises(InputError, match="exclude each other"):
        say(voice, "One.", pitch=[100.0] * 5)
    with pytest.raises(InputError, match="the text holds control characters"):
        say(voice, "One \x85\x01")
