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


@pytest.mark.parametrize(
    ("phones", "phone", "nearest"),
    [
        # the same vowel with another stress
        ("OY2 OW1 AO1 OY0 IH0", "OY1", "OY2"), ("OY0 AO1 IH0", "OY1", "OY0"),
        ("AH1 AA0", "AH", "AH1"), ("AA0 AA1 AA2", "AA", "AA1"), ("AA0 AA1 AA2", "AA0", "AA0"),
        ("AA0 AE1", "AA", "AA0"), ("AA AE1", "AA0", "AA"), ("AA AA1 AA0", "ˈɑː", "AA1"),
        ("AA AA0", "ɑː", "AA0"),
        # pauses, and what is no phone
        ("<sil> <.> <,> AH0", "<?>", "<.>"), ("<sil> <.> <,> AH0", "<!>", "<.>"),
        ("<sil> <.> <,> AH0", "<sp>", "<,>"), ("<sil> <.> AH0", "<,>", "<.>"),
        ("<.>", "a", ""), ("AH0", "<.>", ""),
    ],
)  # fmt: skip
def test_a_set_gives_the_nearest_of_its_phones_and_pauses(phones, phone, nearest):
    assert " ".join(PhoneSet(phones.split()).nearest(phone)) == nearest


@pytest.mark.parametrize(
    ("phone", "nearest"),
    [
        ("S", "SH"), ("ZH", "Z"), ("TH", "F"), ("DH", "V"), ("NG", "N"), ("B", "P"), ("T", "D"),
        ("IY1", "IH1"), ("AE1", "EH1"), ("OY1", "AO1 IH0"), ("CH", "T SH"), ("ER1", "AH1 R"),
    ],
)  # fmt: skip
def test_arpabet_is_replaced_by_what_sounds_alike(phone, nearest):
    with_stress = [name for name in ARPABET if f"{name}1" not in ARPABET]
    others = [name for name in with_stress if name.rstrip("012") != phone.rstrip("012")]
    assert " ".join(PhoneSet(others).nearest(phone)) == nearest


@pytest.mark.parametrize(
    ("phone", "nearest"),
    [
        ("θ", "f"), ("ð", "v"), ("w", "uː"), ("ʁ", "x"), ("tʃ", "ts"), ("ɲ", "ŋ"), ("ʎ", "l"),
        ("ˈæ", "ˈa"), ("yː", "yː"), ("ˈyː", "yː"), ("œ", "øː"), ("ˈɔɪ", "ɔ ɪ"), ("ɔ̃", "ɔ n"),
        ("ˌaɪɚ", "aɪ ə r"), ("n̩", "n"), ("pʲ", "p"), ("i.5", "iː"), ("g", "k"), ("ʃ", "ʃ"),
        ("ˈʏ", "ʏ"), ("a", "a"), ("ǃ", ""),
    ],
)  # fmt: skip
def test_ipa_is_replaced_by_what_sounds_alike(phone, nearest):
    assert " ".join(GERMAN.nearest(phone)) == nearest


@pytest.mark.parametrize("language", ["en-us", "fr-fr", "nl", "ru", "hi", "ar", "ja", "cmn", "vi"])
def test_every_phone_of_espeak_has_a_nearest_one(language):
    words = [str(number) for number in (*range(22), 35, 48, 67, 99, 100, 1000, 1000000)]
    for phone in {phone for word in speak(language, words) for phone in word}:
        assert GERMAN.nearest(phone), phone


def test_marks_and_voiceless_consonants_have_no_voice_and_vowels_and_what_is_unknown_have():
    assert not any(is_voiced(mark) for mark in (*MARKS, ",", "...", " ", "'"))
    voiceless = {"CH", "F", "HH", "K", "P", "S", "SH", "T", "TH"}
    assert {phone for phone in CONSONANTS if not is_voiced(phone)} == voiceless
    assert not any(is_voiced(phone) for phone in ("tʃ", "θ", "pʰ", "ʔ", "ç", "l̥", "ts", "ʍ"))

    vowels = set(ARPABET) - set(CONSONANTS)
    assert all(is_voiced(phone) for phone in (*vowels, "ˈaː", "dʒ", "z", "ɦ", "n̩", "ɔ̃", "ɹ"))
    assert all(is_voiced(phone) for phone in ("é", "Ω", "人"))


def test_letters_are_voiced_and_arpabet_next_to_them_is_as_ever():
    assert all(is_voiced(letter, in_letters=True) for letter in "asptéß人")
    assert not any(is_voiced(mark, in_letters=True) for mark in ("<space>", "<,>", "-", "'"))
    phones = ("S", "@S", "Z", "@Z", "AH0", "@AH0")
    assert [is_voiced(phone, in_letters=True) for phone in phones] == [0, 0, 1, 1, 1, 1]


TRAINED = ["<sil>", "<.>", "B", "M", "AO1", "IH0", "AH1", "OW2"]


def spoken(phones, *words):
    return SpokenText("a", "a", tuple(phones.split()), tuple(Word(*word) for word in words))


BOY = spoken("<sil> B OY1 M AH1 M <?>", ("boy", 1, 3), ("mum", 3, 6))
MUM = spoken("<sil> M AH1 M <.>", ("mum", 1, 4))


@pytest.mark.parametrize(
    ("trained", "unknown", "clause", "phones"),
    [
        (TRAINED, "refuse", MUM, "<sil> M AH1 M <.>"),
        (TRAINED, "replace", spoken("<sil> M AH1 M <!>", ("mum", 1, 4)), "<sil> M AH1 M <.>"),
        (["M", "AH1"], "replace", MUM, "<sil> M AH1 M <.>"),  # a voice without any pause
        ([*TRAINED, "OY1"], "refuse", BOY, "<sil> B OY1 M AH1 M <.>"),
        (  # letters, and symbols of NVIDIA
            ["<sil>", "e", "b", "<,>", "<space>", "@AO1", "@B", "<.>"], "replace",
            spoken("<sil> é <;> @AO2 <.>", ("é", 1, 2), ("AO2", 3, 4)), "<sil> e <,> @AO1 <.>",
        ),
    ],
)  # fmt: skip
def test_clauses_are_in_the_phones_of_the_voice(trained, unknown, clause, phones, caplog):
    ((fitted,),) = VoicePhones(trained, unknown).fit([[clause]])
    assert (" ".join(fitted.phones), fitted.words) == (phones, clause.words)
    has_warning = {"<?>", "@AO2"} & {*clause.phones}  # an exclamation mark needs none
    assert len(caplog.messages) == bool(has_warning)


def test_other_phones_become_the_nearest_or_nothing_with_one_warning_and_words_keep_theirs(caplog):
    voice = VoicePhones(TRAINED, "replace")
    for _ in range(2):
        ((plain, fitted),) = voice.fit([[MUM, BOY]])
    assert plain == MUM
    assert fitted.phones == ("<sil>", "B", "AO1", "IH0", "M", "AH1", "M", "<.>")
    assert fitted.words == (("boy", 1, 4), ("mum", 4, 7))
    assert caplog.messages == [
        "this voice was not trained on all phones of the text and replaces OY1 in 'boy' by AO1 IH0,"
        " <?> by <.>"
    ]
    its = spoken("<sil> i t ' s <.>", ("it's", 1, 5))
    ((fitted,),) = VoicePhones(["<sil>", "i", "t", "s", "<.>"], "refuse").fit([[its]])
    assert fitted.phones == ("<sil>", "i", "t", "s", "<.>")
    assert fitted.words == (("it's", 1, 4),)
    assert "' in 'it's' by nothing" in caplog.text


def test_other_phones_are_refused_if_wanted_and_those_like_no_other_always():
    with pytest.raises(InputError, match=r"phone OY1 in 'boy'; the nearest: AO1 IH0; set infer"):
        VoicePhones(TRAINED, "refuse").fit([[BOY]])
    with pytest.raises(InputError, match="phone ǃ in 'x', and has none like it"):
        VoicePhones(TRAINED, "replace").fit([[spoken("<sil> ǃ <.>", ("x", 1, 2))]])


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
    with pytest.raises(InputError, match="phones  are not among the 92 symbols"):
        arpabet.ids(["AA1", ""])
    for symbols in (["a", PAD], [PAD, "a", "a"], []):
        message = r"a vocabulary (holds a symbol twice|must start with)"
        with pytest.raises(InputError, match=message):
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
