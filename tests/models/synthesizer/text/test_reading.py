import pytest

from models.synthesizer.text.reading import Passage, TextReader
from models.synthesizer.text.voice_phones import VoicePhones
from processors.records import SpokenText
from utils.errors import InputError

NAMES = ("<sil>", "A", "<,>", "<sil>", "B", "C", "<.>")
SENTENCES = [[NAMES[:3], NAMES[3:5]], [NAMES[5:]]]  # a sentence of two clauses, and one of one


def split(text: str, language: str) -> list[list[SpokenText]]:
    assert (text, language) == ("Any.", "en")
    return [[SpokenText(text, text, phones, ()) for phones in clauses] for clauses in SENTENCES]


READER = TextReader(split, VoicePhones(NAMES, "refuse"))


def read(pitch=None, *, pauses: bool) -> list[list[Passage]]:
    return READER.passages("Any.", "en", pitch, pauses=pauses)


def test_passages_share_out_the_text():
    (first, second), (third,) = read(pauses=True)
    assert first.spoken.phones + second.spoken.phones + third.spoken.phones == NAMES
    ends = [first.start, first.end, second.start, second.end, third.start, third.end]
    assert ends == pytest.approx([0, 3 / 7, 3 / 7, 5 / 7, 5 / 7, 1])
    assert {first.pitch, second.pitch, third.pitch} == {None}


def test_phones_are_listed_with_the_pauses_between_sentences():
    names = READER.phone_names("Any.", "en", pauses=True)
    assert names == (*NAMES[:5], "<sil>", *NAMES[5:])
    assert READER.phone_names("Any.", "en", pauses=False) == NAMES


@pytest.mark.parametrize(
    ("pauses", "rows"),
    [(True, [(0, 1, 2), (3, 4), (6, 7)]), (False, [(0, 1, 2), (3, 4), (5, 6)])],
)
def test_given_pitch_is_shared_out_as_phones_are_listed(pauses, rows):
    pitch = range(len(READER.phone_names("Any.", "en", pauses=pauses)))
    (first, second), (third,) = read(pitch, pauses=pauses)
    assert [first.pitch, second.pitch, third.pitch] == rows


def test_pitch_for_another_number_of_phones_is_refused():
    with pytest.raises(InputError, match="the pitch has 7 values, and the text 8 phones and pause"):
        read([100.0] * 7, pauses=True)
