from pathlib import Path

import pytest

from config.preprocess import CorpusConfig
from preprocessors.ljspeech import utterances
from preprocessors.manifest import Rejection, Utterance
from utils.errors import InputError

DEMO = Path(__file__).parents[2] / "egs/_demo/LJSpeech-mini"


def listing(root, **options):
    return utterances(root, "LJSpeech", CorpusConfig(**options))


def test_real_clips_are_all_listed_with_their_normalized_text():
    utterances_, rejected, notices, _ = listing(DEMO)
    assert (len(utterances_), rejected, notices) == (55, [], [])
    assert utterances_[0].audio == DEMO / "wavs/LJ001-0001.flac"
    assert utterances_[0].source == "metadata.csv:1"
    # Seven of the texts as written hold digits; the normalized ones spell them out.
    assert not any(character.isdigit() for u in utterances_ for character in u.text)


def test_text_is_normalized_if_it_can_be_language_and_speaker_come_from_the_config(corpus):
    root = corpus({"metadata.csv": "a|Dr. X|Doctor X\n", "wavs/a.wav": ""})
    wanted = Utterance("a", root / "wavs/a.wav", "Doctor X", "LJSpeech", "en-us", "metadata.csv:1")
    assert listing(root).utterances == [wanted]
    (utterance,) = listing(root, language="de", speaker="Kerstin").utterances
    assert (utterance.language, utterance.speaker) == ("de", "Kerstin")


def test_latin_1_metadata_is_read_when_the_config_says_so(corpus):
    text = "a|Café.\nb|A\x85 bar.\n"  # 0x85 counts as an end of line in Unicode
    root = corpus({"metadata.csv": text.encode("latin-1"), "wavs/a.wav": "", "wavs/b.wav": ""})
    found = listing(root, encoding="latin-1")
    assert [utterance.text for utterance in found.utterances] == ["Café."]
    fault = r"metadata.csv:2: the text holds control characters: A\x85 bar.; remove them, or set"
    assert fault in found.rejected[0].reason


@pytest.mark.parametrize("line_end", ["\r\n", "\r", "\n"])
def test_byte_order_mark_and_any_line_end_are_accepted(corpus, line_end):
    text = f"\ufeffa|One.{line_end}{line_end}b|Two.{line_end}"
    root = corpus({"metadata.csv": text, "wavs/a.wav": "", "wavs/b.wav": ""})
    assert [(u.id, u.text) for u in listing(root).utterances] == [("a", "One."), ("b", "Two.")]


def test_wrong_column_count_is_rejected_with_its_line_or_an_error_of_most_lines(corpus):
    table = "a|One.|One.\nb|Two.\nc|T|h|ree\nd|Four|Four\n"
    found = listing(corpus({"metadata.csv": table, **{f"wavs/{name}.wav": "" for name in "abcd"}}))
    assert [u.id for u in found.utterances] == ["a", "d"]
    wanted = "columns, expected 3 (id, text, normalized)"
    assert found.rejected == [
        Rejection("b", "corpus", f"metadata.csv:2: 2 {wanted}"),
        Rejection("c", "corpus", f"metadata.csv:3: 4 {wanted}"),
    ]
    with pytest.raises(InputError, match=r"most lines have 1 column; expected id\|text or"):
        listing(corpus({"metadata.csv": "a One.\nb Two.\n"}))


def test_audio_not_listed_is_counted_in_a_notice_and_a_double_id_without_text_once(corpus):
    audio = {f"wavs/{name}.wav": "" for name in "abcdef"}
    others = {"wavs/._a.wav": "", "wavs/notes.txt": ""}
    found = listing(corpus({"metadata.csv": "a|One.\nf|Two.\na|\n", **audio, **others}))
    files = "wavs/b.wav, wavs/c.wav, wavs/d.wav and 1 more"
    assert found.notices == [f"LJSpeech: audio files without a text are left out (4): {files}"]
    (rejection,) = found.rejected
    assert "the id a occurs 2 times" in rejection.reason


@pytest.mark.parametrize(
    ("id", "reason"),
    [
        *((id, "is not the name of a file in the corpus folder") for id in ("../../x", ".", "..")),
        *((id, "no audio file") for id in ("/etc/x", "x y", "é")),
        ("x\0y", r"the id holds control characters: x\x00y"),
        ("x" * 300, "is longer than the name of a file may be"),
    ],
)
def test_a_name_that_leads_to_no_file_of_the_corpus_is_rejected(corpus, id, reason):
    root = corpus({"metadata.csv": f"{id}|Evil.\na|One.\n", "wavs/a.wav": "", "../x.wav": ""})
    found = listing(root)
    assert [u.id for u in found.utterances] == ["a"]
    assert [rejection.id for rejection in found.rejected] == [id]
    assert "metadata.csv:1: " in found.rejected[0].reason
    assert reason in found.rejected[0].reason
