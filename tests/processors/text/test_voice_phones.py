import pytest

from processors.records import SpokenText, Word
from processors.text.voice_phones import VoicePhones
from utils.errors import InputError

TRAINED = ["<sil>", "<.>", "B", "M", "AO1", "IH0", "AH1", "OW2"]
BOY = SpokenText(
    "my boy mom?",
    "my boy mom?",
    ("<sil>", "B", "OY1", "M", "AH1", "M", "<?>"),
    (Word("boy", 1, 3), Word("mum", 3, 6)),
)
PLAIN = SpokenText("mum", "mum", ("<sil>", "M", "AH1", "M", "<.>"), (Word("mum", 1, 4),))


def test_phones_of_the_training_data_stay_as_they_are(caplog):
    assert VoicePhones(TRAINED, "refuse").fit([PLAIN]) == [PLAIN]
    assert caplog.text == ""


def test_other_phones_become_the_nearest_and_words_keep_theirs():
    plain, fitted = VoicePhones(TRAINED, "replace").fit([PLAIN, BOY])
    assert plain == PLAIN
    assert fitted.phones == ("<sil>", "B", "AO1", "IH0", "M", "AH1", "M", "<.>")
    assert fitted.words == (("boy", 1, 4), ("mum", 4, 7))


def test_a_warning_names_phone_word_and_replacement_once(caplog):
    phones = VoicePhones(TRAINED, "replace")
    for _ in range(2):
        phones.fit([BOY, BOY])
    (record,) = caplog.records
    assert record.getMessage() == (
        "this voice was not trained on all phones of the text and replaces OY1 in 'boy' by AO1 IH0,"
        " <?> by <.>"
    )


def test_an_exclamation_mark_becomes_a_full_stop_without_a_warning(caplog):
    text = SpokenText("mum!", "mum!", (*PLAIN.phones[:-1], "<!>"), PLAIN.words)
    (fitted,) = VoicePhones(TRAINED, "replace").fit([text])
    assert fitted.phones == PLAIN.phones
    assert caplog.text == ""


def test_other_phones_are_refused_if_wanted_but_not_pauses():
    with pytest.raises(InputError, match=r"phone OY1 in 'boy'; the nearest: AO1 IH0; set infer"):
        VoicePhones(TRAINED, "refuse").fit([BOY])
    (fitted,) = VoicePhones([*TRAINED, "OY1"], "refuse").fit([BOY])
    assert fitted.phones == (*BOY.phones[:-1], "<.>")


def test_a_phone_that_is_like_no_other_is_refused():
    alien = SpokenText("x", "x", ("<sil>", "ǃ", "<.>"), (Word("x", 1, 2),))
    with pytest.raises(InputError, match="phone ǃ in 'x', and has none like it"):
        VoicePhones(TRAINED, "replace").fit([alien])


def test_a_voice_without_any_pause_keeps_them():
    (fitted,) = VoicePhones(["M", "AH1"], "replace").fit([PLAIN])
    assert fitted.phones == PLAIN.phones


def test_letters_and_symbols_of_nvidia_that_were_not_trained_are_replaced_by_like_ones():
    phones = ("<sil>", "é", "<;>", "@AO2", "<.>")
    text = SpokenText("é", "é", phones, (Word("é", 1, 2), Word("AO2", 3, 4)))
    trained = ["<sil>", "e", "b", "<,>", "<space>", "@AO1", "@B", "<.>"]
    (fitted,) = VoicePhones(trained, "replace").fit([text])
    assert fitted.phones == ("<sil>", "e", "<,>", "@AO1", "<.>")


def test_an_apostrophe_that_was_not_trained_is_left_out(caplog):
    phones = ("<sil>", "i", "t", "'", "s", "<.>")
    text = SpokenText("it's", "it's", phones, (Word("it's", 1, 5),))
    (fitted,) = VoicePhones(["<sil>", "i", "t", "s", "<.>"], "refuse").fit([text])
    assert fitted.phones == ("<sil>", "i", "t", "s", "<.>")
    assert fitted.words == (("it's", 1, 4),)
    assert "' in 'it's' by nothing" in caplog.text


@pytest.mark.parametrize("unknown", ["replace", "refuse"])
def test_a_voice_of_unknown_symbols_reads_no_text(unknown):
    phones = VoicePhones(["<pad>", "<symbol:1>", "<symbol:2>"], unknown)
    with pytest.raises(InputError, match=r"cannot read text: .* does not name its 2 symbols"):
        phones.fit([PLAIN])
