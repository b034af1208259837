import pytest

from config.preprocess import CorpusConfig
from preprocessors.manifest import Rejection
from preprocessors.vctk import utterances
from utils.errors import InputError

RELEASE_092 = {
    "txt/p225/p225_001.txt": "Please call Stella.\n",
    "txt/p226/p226_001.txt": "Ask her  to bring\nthese things.\n",
    "wav48_silence_trimmed/p225/p225_001_mic1.flac": "",
    "wav48_silence_trimmed/p225/p225_001_mic2.flac": "",
    "wav48_silence_trimmed/p226/p226_001_mic1.flac": "",
}


def listing(root):
    return utterances(root, "VCTK", CorpusConfig())


def test_release_092_gives_the_first_microphone_and_the_speakers(corpus):
    found = listing(corpus(RELEASE_092))
    assert [(u.id, u.speaker, u.text, u.audio.name) for u in found.utterances] == [
        ("p225_001", "VCTK_p225", "Please call Stella.", "p225_001_mic1.flac"),
        ("p226_001", "VCTK_p226", "Ask her to bring these things.", "p226_001_mic1.flac"),
    ]
    assert found.utterances[0].source == "txt/p225/p225_001.txt"
    assert (found.rejected, found.notices) == ([], [])


def test_release_080_is_read_and_names_with_blanks_get_safe_ids(corpus):
    texts = {"txt/p225/p225_001.txt": "Hello.", "txt/p225/take 1.txt": "Hello."}
    root = corpus({**texts, "wav48/p225/p225_001.wav": "", "wav48/p225/take 1.wav": ""})
    utterance, take = listing(root).utterances
    assert utterance.audio == root / "wav48/p225/p225_001.wav"
    assert utterance.speaker == "VCTK_p225"
    assert (take.name, take.audio.name) == ("take 1", "take 1.wav")


def test_a_text_without_audio_is_rejected(corpus):
    files = {"txt/p225/p225_002.txt": "Lost.", "txt/p300/p300_001.txt": "Lost, too."}
    reason = "no audio file {} (.wav, .flac, .mp3 ...)"
    assert listing(corpus(RELEASE_092 | files)).rejected == [
        Rejection("p225_002", "corpus", f"txt/p225/p225_002.txt: {reason.format('p225_002')}"),
        Rejection("p300_001", "corpus", f"txt/p300/p300_001.txt: {reason.format('p300_001')}"),
    ]


def test_recordings_without_texts_are_counted_in_a_notice_and_double_ones_rejected(corpus):
    audio = {f"wav48_silence_trimmed/p315/p315_00{i}_mic1.flac": "" for i in (1, 2)}
    audio |= {"wav48_silence_trimmed/p225/p225_001_mic1.wav": ""}
    found = listing(corpus(RELEASE_092 | audio))
    (rejection,) = found.rejected
    assert "p225_001_mic1.flac and " in rejection.reason
    assert "p225_001_mic1.wav; remove or rename" in rejection.reason
    (notice,) = found.notices
    assert notice.startswith("VCTK: audio files without a text are left out (2): wav48_")


def test_a_folder_of_another_layout_is_an_error_that_names_the_key(corpus):
    root = corpus({"wavs/a.wav": ""})
    match = r"expected txt/<speaker>/<id>\.txt and wav48_.*as dataset_path\.VCTK"
    with pytest.raises(InputError, match=match):
        listing(root)


@pytest.mark.parametrize(
    "files",
    [
        {"txt/p225_001.txt": "Hello.", "wav48/p225_001.wav": ""},
        {"txt/p225/p225_001.txt": "Hello.", "wav48/p225_001.wav": ""},
        {"txt/p225/p225_001.lab": "Hello.", "wav48/p225/p225_001.wav": ""},
        {"txt/p225/": None, "wav48/p225/": None},
    ],
)
def test_a_layout_without_utterances_is_an_error_with_what_the_folder_holds(corpus, files):
    root = corpus({name: text for name, text in files.items() if text is not None})
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    kinds = "" if None in files.values() else r"1 \.(txt|lab|wav) \(.*p225_001.*\)"
    with pytest.raises(InputError, match=rf"expected txt/<speaker>/<id>\.txt .* holds .*{kinds}"):
        listing(root)
