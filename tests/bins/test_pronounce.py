"""`arion pronounce`: phones of words, and why."""

import pytest
import soundfile

from tests.commands import call
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.cli import UsageError
from utils.errors import InputError


def test_words_are_lines_of_a_dictionary_and_can_be_heard(tmp_path, monkeypatch, capsys):
    voice = make_voice(tmp_path / "voice")
    monkeypatch.chdir(tmp_path)

    def pronounce(*words):
        call("pronounce", *words, "--voice", voice)
        return capsys.readouterr().out

    (tmp_path / "words.txt").write_text("nevada = nuh-VAD-uh\n")
    flags = ("--lexicon", "words.txt")
    printed = pronounce("Nevada", "it", "zorblat", *flags, "-o", "a.wav")
    assert printed == (
        "Nevada  N AH0 V AE1 D AH0  # your dictionary\n"
        "it  IH1 T  # lexicon\n"
        "zorblat  Z AO1 R B L AE2 T  # letter-to-sound\n"
    )
    assert soundfile.info("a.wav").duration > 0
    (tmp_path / "words.txt").write_text(printed)
    assert pronounce("zorblat", *flags) == "zorblat  Z AO1 R B L AE2 T  # your dictionary\n"
    entries = "US = you ess\nNew York = city\n@ = at sign\nSQL = {S IY1} quell\n"
    (tmp_path / "words.txt").write_text(entries)
    assert pronounce("The", "US,", "US's", "new York", "SQL", "it@it us.", *flags) == (
        "The  DH AH0  # lexicon\n"
        "US  Y UW1 EH1 S  # your dictionary\n"
        "US's  Y UW1 EH1 S IH0 Z  # your dictionary\n"
        "new York  S IH1 T IY0  # your dictionary\n"
        "SQL  S IY1 K W EH1 L  # your dictionary\n"
        "it  IH1 T  # lexicon\n"
        "@  AE1 T S AY1 N  # your dictionary\n"
        "it  IH1 T  # lexicon\n"
        "us  AH1 S  # lexicon\n"
    )
    with pytest.raises(InputError, match=r"no word to say in '\.\.\.'"):
        pronounce("...", *flags)
    (tmp_path / "words.txt").write_text("a  AH0\nnevada\n")
    with pytest.raises(InputError, match=r"words\.txt:2: 'nevada' has no pronunciation"):
        pronounce("it", *flags)
    with pytest.raises(UsageError, match="give a word"):
        pronounce()
    with pytest.raises(UsageError, match=r"a\.txt'?: expected \.wav, "):
        pronounce("it", "-o", "a.txt")
