import pytest

from config.text import TextConfig
from processors.records import SpokenText, Word
from processors.text.symbols import ARPABET, CONSONANTS, MARKS, PAD, PUNCTUATION_PAUSES
from processors.text.voice_phones import (
    PhoneSet,
    Vocabulary,
    VoicePhones,
    arpabet_vocabulary,
    is_voiced,
    model_vocabulary,
    nvidia_vocabulary,
    vocabulary_of,
)
from tests.processors.text.test_espeak import speak
from utils.errors import InputError

GERMAN = PhoneSet(
    ["a", "aː", "ə", "ɐ", "b", "d", "eː", "f", "h", "iː", "ɪ", "j", "k", "l", "m", "n", "ŋ", "oː",
     "ɔ", "p", "r", "s", "ʃ", "t", "ts", "uː", "ʊ", "v", "x", "z", "ç", "øː", "yː", "ʏ", "aɪ", "aʊ",
     "ˈa"]
)  # fmt: skip


def without(*names):
    """ARPAbet with stress, except these phones in all their stresses."""
    return PhoneSet(
        phone
        for phone in ARPABET
        if phone.rstrip("012") not in names and not (phone.isalpha() and f"{phone}1" in ARPABET)
    )


def test_a_phone_of_the_set_is_itself():
    assert GERMAN.nearest("ʃ") == ("ʃ",)


def test_the_same_vowel_with_another_stress_is_nearest():
    assert PhoneSet(["OY2", "OW1", "AO1", "OY0", "IH0"]).nearest("OY1") == ("OY2",)
    assert PhoneSet(["OY0", "AO1", "IH0"]).nearest("OY1") == ("OY0",)
    assert PhoneSet(["AH1", "AA0"]).nearest("AH") == ("AH1",)
    assert [PhoneSet(["AA0", "AA1", "AA2"]).nearest(f"AA{n}") for n in ("", 0)] == [
        ("AA1",),
        ("AA0",),
    ]
    assert PhoneSet(["AA0", "AE1"]).nearest("AA") == ("AA0",)
    assert PhoneSet(["AA", "AE1"]).nearest("AA0") == ("AA",)
    assert [
        PhoneSet(["AA", "AA1", "AA0"]).nearest("ˈɑː"),
        PhoneSet(["AA", "AA0"]).nearest("ɑː"),
    ] == [
        ("AA1",),
        ("AA0",),
    ]
    assert GERMAN.nearest("ˈʏ") == ("ʏ",)
    assert GERMAN.nearest("a") == ("a",)


@pytest.mark.parametrize(
    ("phone", "nearest"),
    [
        ("S", "SH"), ("ZH", "Z"), ("TH", "F"), ("DH", "V"), ("NG", "N"), ("B", "P"), ("T", "D"),
        ("IY1", "IH1"), ("AE1", "EH1"), ("OY1", "AO1 IH0"), ("CH", "T SH"), ("ER1", "AH1 R"),
    ],
)  # fmt: skip
def test_arpabet_is_replaced_by_what_sounds_alike(phone, nearest):
    assert " ".join(without(phone.rstrip("012")).nearest(phone)) == nearest


@pytest.mark.parametrize(
    ("phone", "nearest"),
    [
        ("θ", "f"), ("ð", "v"), ("w", "uː"), ("ʁ", "x"), ("tʃ", "ts"), ("ɲ", "ŋ"), ("ʎ", "l"),
        ("ˈæ", "ˈa"), ("yː", "yː"), ("ˈyː", "yː"), ("œ", "øː"), ("ˈɔɪ", "ɔ ɪ"), ("ɔ̃", "ɔ n"),
        ("ˌaɪɚ", "aɪ ə r"), ("n̩", "n"), ("pʲ", "p"), ("i.5", "iː"), ("g", "k"),
    ],
)  # fmt: skip
def test_ipa_is_replaced_by_what_sounds_alike(phone, nearest):
    assert " ".join(GERMAN.nearest(phone)) == nearest


def test_pauses_are_replaced_by_the_nearest_pause():
    voice = PhoneSet(["<sil>", "<.>", "<,>", "AH0"])
    assert [voice.nearest(f"<{mark}>") for mark in ("?", "!", "sp")] == [
        ("<.>",),
        ("<.>",),
        ("<,>",),
    ]
    assert PhoneSet(["<sil>", "<.>", "AH0"]).nearest("<,>") == ("<.>",)


def test_what_is_no_phone_has_no_nearest():
    assert GERMAN.nearest("ǃ") == PhoneSet(["<.>"]).nearest("a") == ()
    assert PhoneSet(["AH0"]).nearest("<.>") == ()


@pytest.mark.parametrize("language", ["en-us", "fr-fr", "nl", "ru", "hi", "ar", "ja", "cmn", "vi"])
def test_every_phone_of_espeak_has_a_nearest_one(language):
    words = [str(number) for number in (*range(22), 35, 48, 67, 99, 100, 1000, 1000000)]
    for phone in {phone for word in speak(language, words) for phone in word}:
        assert GERMAN.nearest(phone), phone


def test_voiceless_are_marks_punctuation_and_voiceless_consonants():
    assert not any(is_voiced(mark) for mark in (*MARKS, ",", "...", " ", "'"))
    voiceless = {"CH", "F", "HH", "K", "P", "S", "SH", "T", "TH"}
    assert {phone for phone in CONSONANTS if not is_voiced(phone)} == voiceless
    assert not any(is_voiced(phone) for phone in ("tʃ", "θ", "pʰ", "ʔ", "ç", "l̥", "ts", "ʍ"))


def test_voiced_are_vowels_voiced_consonants_and_what_is_unknown():
    vowels = set(ARPABET) - set(CONSONANTS)
    assert all(is_voiced(phone) for phone in (*vowels, "ˈaː", "dʒ", "z", "ɦ", "n̩", "ɔ̃", "ɹ"))
    assert all(is_voiced(phone) for phone in ("é", "Ω", "人"))


def test_letters_are_voiced_and_arpabet_next_to_them_is_as_ever():
    assert all(is_voiced(letter, in_letters=True) for letter in "asptéß人")
    assert not any(is_voiced(mark, in_letters=True) for mark in ("<space>", "<,>", "-", "'"))
    phones = ("S", "@S", "Z", "@Z", "AH0", "@AH0")
    assert [is_voiced(phone, in_letters=True) for phone in phones] == [0, 0, 1, 1, 1, 1]


TRAINED = ["<sil>", "<.>", "B", "M", "AO1", "IH0", "AH1", "OW2"]
BOY = SpokenText(
    "my boy mom?",
    "my boy mom?",
    ("<sil>", "B", "OY1", "M", "AH1", "M", "<?>"),
    (Word("boy", 1, 3), Word("mum", 3, 6)),
)
PLAIN = SpokenText("mum", "mum", ("<sil>", "M", "AH1", "M", "<.>"), (Word("mum", 1, 4),))


def test_phones_of_the_training_data_stay_as_they_are(caplog):
    assert VoicePhones(TRAINED, "refuse").fit([[PLAIN]]) == [[PLAIN]]
    assert caplog.text == ""


def test_other_phones_become_the_nearest_and_words_keep_theirs():
    ((plain, fitted),) = VoicePhones(TRAINED, "replace").fit([[PLAIN, BOY]])
    assert plain == PLAIN
    assert fitted.phones == ("<sil>", "B", "AO1", "IH0", "M", "AH1", "M", "<.>")
    assert fitted.words == (("boy", 1, 4), ("mum", 4, 7))


def test_a_warning_names_phone_word_and_replacement_once(caplog):
    phones = VoicePhones(TRAINED, "replace")
    for _ in range(2):
        phones.fit([[BOY, BOY]])
    (record,) = caplog.records
    assert record.getMessage() == (
        "this voice was not trained on all phones of the text and replaces OY1 in 'boy' by AO1 IH0,"
        " <?> by <.>"
    )


def test_an_exclamation_mark_becomes_a_full_stop_without_a_warning(caplog):
    text = SpokenText("mum!", "mum!", (*PLAIN.phones[:-1], "<!>"), PLAIN.words)
    ((fitted,),) = VoicePhones(TRAINED, "replace").fit([[text]])
    assert fitted.phones == PLAIN.phones
    assert caplog.text == ""


def test_other_phones_are_refused_if_wanted_but_not_pauses():
    with pytest.raises(InputError, match=r"phone OY1 in 'boy'; the nearest: AO1 IH0; set infer"):
        VoicePhones(TRAINED, "refuse").fit([[BOY]])
    ((fitted,),) = VoicePhones([*TRAINED, "OY1"], "refuse").fit([[BOY]])
    assert fitted.phones == (*BOY.phones[:-1], "<.>")


def test_a_phone_that_is_like_no_other_is_refused():
    alien = SpokenText("x", "x", ("<sil>", "ǃ", "<.>"), (Word("x", 1, 2),))
    with pytest.raises(InputError, match="phone ǃ in 'x', and has none like it"):
        VoicePhones(TRAINED, "replace").fit([[alien]])


def test_a_voice_without_any_pause_keeps_them():
    ((fitted,),) = VoicePhones(["M", "AH1"], "replace").fit([[PLAIN]])
    assert fitted.phones == PLAIN.phones


def test_letters_and_symbols_of_nvidia_that_were_not_trained_are_replaced_by_like_ones():
    phones = ("<sil>", "é", "<;>", "@AO2", "<.>")
    text = SpokenText("é", "é", phones, (Word("é", 1, 2), Word("AO2", 3, 4)))
    trained = ["<sil>", "e", "b", "<,>", "<space>", "@AO1", "@B", "<.>"]
    ((fitted,),) = VoicePhones(trained, "replace").fit([[text]])
    assert fitted.phones == ("<sil>", "e", "<,>", "@AO1", "<.>")


def test_an_apostrophe_that_was_not_trained_is_left_out(caplog):
    phones = ("<sil>", "i", "t", "'", "s", "<.>")
    text = SpokenText("it's", "it's", phones, (Word("it's", 1, 5),))
    ((fitted,),) = VoicePhones(["<sil>", "i", "t", "s", "<.>"], "refuse").fit([[text]])
    assert fitted.phones == ("<sil>", "i", "t", "s", "<.>")
    assert fitted.words == (("it's", 1, 4),)
    assert "' in 'it's' by nothing" in caplog.text


def test_ids_are_places_in_the_list():
    arpabet = arpabet_vocabulary()
    assert arpabet.ids([PAD]) == [0]
    assert len(arpabet) == len(MARKS) + 24 + 15 * 4
    assert {*PUNCTUATION_PAUSES, "<sil>", "<sp>"} < set(MARKS) < set(arpabet.symbols)
    vocabulary = vocabulary_of(["b", "a", "<sil>", "b"])
    assert vocabulary.symbols == (*MARKS, "a", "b")
    assert vocabulary.ids(["b", "a"]) == [len(MARKS) + 1, len(MARKS)]
    assert Vocabulary(vocabulary.symbols) == vocabulary
    with pytest.raises(InputError, match="phones QQ XX are not among the 92 symbols"):
        arpabet.ids(["AA1", "XX", "QQ"])
    for symbols in (["a", PAD], [PAD, "a", "a"], []):
        with pytest.raises(
            InputError, match=r"a vocabulary (holds a symbol twice|must start with)"
        ):
            Vocabulary(symbols)


@pytest.mark.parametrize(
    ("extractor", "symbols"),
    [
        ("lexicon", (*arpabet_vocabulary().symbols, "a", "ø")),
        ("espeak", (*MARKS, "AA1", "a", "ø")),
        ("letters", (*MARKS, "<space>", "AA1", "a", "ø")),
        ("mixed", (*arpabet_vocabulary().symbols, "<space>", "a", "ø")),
        ("nvidia_english", nvidia_vocabulary("nvidia_english").symbols),
    ],
)
def test_a_vocabulary_has_fixed_symbols_first_and_then_those_of_the_data(extractor, symbols):
    text = TextConfig(phone_extractor=extractor)
    assert model_vocabulary(text, {"ø", "a", "AA1", "<sil>"}).symbols == symbols
