import pytest

from processors.records import SpokenText, Word
from processors.text import passages
from processors.text.passages import Passage, ProsodyFactors, TextRun, cut_runs, phone_names
from utils.errors import InputError

NAMES = ("<sil>", "A", "<,>", "<sil>", "B", "C", "<.>")
SENTENCES = [  # one of two clauses, and one of one
    [SpokenText("A,", "a,", NAMES[:3], ()), SpokenText("b", "b", NAMES[3:5], ())],
    [SpokenText("C.", "c.", NAMES[5:], ())],
]


@pytest.mark.parametrize(
    ("pauses", "names", "rows"),
    [
        (True, (*NAMES[:5], "<sil>", *NAMES[5:]), [(0, 1, 2), (3, 4), (6, 7)]),
        (False, NAMES, [(0, 1, 2), (3, 4), (5, 6)]),
    ],
)
def test_given_pitch_is_shared_out_as_phones_are_listed_with_pauses(pauses, names, rows):
    assert phone_names(SENTENCES, pauses=pauses) == names
    pitched = passages.pitched_passages(SENTENCES, range(len(names)), pauses=pauses)
    assert [passage.pitch for passage in pitched] == rows
    assert [passage.starts_sentence for passage in pitched] == [True, False, True]
    message = f"the pitch has 6 values, and the text {len(names)} phones and pauses"
    with pytest.raises(InputError, match=message):
        passages.pitched_passages(SENTENCES, [100.0] * 6, pauses=pauses)
    passages.check_length([100.0] * 2, ("<sil>", "AA"))


def test_runs_are_cut_where_their_text_is_and_no_character_is_lost():
    mark, pause = TextRun("", mark="m"), TextRun("", break_s=1)
    runs = [TextRun("One. Tw"), mark, TextRun("o", "2"), TextRun(" \n"), TextRun("b c", "x")]
    assert cut_runs(runs, ["One.", "Two b", "c"]) == [
        [TextRun("One. ")],
        [TextRun("Tw"), mark, TextRun("o", "2"), TextRun(" \n"), TextRun("b ", "x")],
        [TextRun("c", "")],  # it is shown once
    ]
    # a break at a cut goes with what follows, and a mark at the end with the last
    rows = cut_runs([TextRun("a"), pause, TextRun("b"), mark], ["a", "b"])
    assert rows == [[TextRun("a")], [pause, TextRun("b"), mark]]


def test_questions_that_are_answered_by_yes_or_no_rise_and_all_else_falls():
    rising = [
        "Are you ready?", "Go?", "You're ready?", "When you come, are you ready?", "And you?",
        "It is nice, isn't it?", "Can't you?", 'He asked: "Are you there?"',
        "Do you know who he is?", "What a day. Really?",
    ]  # fmt: skip
    falling = [
        "Go.", "Go!", "Where are you?", "In what way?", "But why did he?", "Tea or coffee?",
        "In that case, what do you do?", "What do you think, John?", "Is it so? Yes.", "",
        "Is it tea, or coffee?",
    ]  # fmt: skip
    assert [text for text in (*rising, *falling) if passages.rises(text)] == rising


def test_the_pitch_rises_from_the_last_stressed_vowel_to_the_end_unless_it_is_given():
    phones = ("<sil>", "R", "EH1", "D", "IY0", "<.>")
    spoken = SpokenText("Ready?", "Ready?", phones, (Word("Ready", 1, 5),))
    risen = passages.with_rise(Passage(spoken, starts_sentence=True), 6)
    factors = [phone.pitch for phone in risen.prosody]
    shares = [0, 0, 1 / 3, 2 / 3, 1, 1]
    assert factors == pytest.approx([2 ** (6 * share / 12) for share in shares])
    slow = Passage(spoken, starts_sentence=True, prosody=(ProsodyFactors(2.0, 1.5),) * 6)
    assert passages.with_rise(slow, 12).prosody[4] == ProsodyFactors(2.0, 3.0)
    assert risen.prosody[0] == passages.PLAIN
    given = Passage(spoken, True, (100.0,) * 6)
    assert passages.with_rise(given, 6) is given
