import pytest

from config.preprocess import CorpusConfig
from preprocessors.libritts import utterances
from preprocessors.manifest import Rejection
from utils.errors import InputError

CHAPTER = "train-clean-100/103/1241"
FILES = {
    f"{CHAPTER}/103_1241_000000_000001.wav": "",
    f"{CHAPTER}/103_1241_000000_000001.normalized.txt": "matthew Cuthbert is surprised",
    f"{CHAPTER}/103_1241_000000_000001.original.txt": "Matthew Cuthbert is surprised",
    f"{CHAPTER}/103_1241.trans.tsv": "",
    "dev-clean/84/121123/84_121123_000007_000001.wav": "",
    "dev-clean/84/121123/84_121123_000007_000001.normalized.txt": "Maximilian.\n",
    "speakers.tsv": "",
}


def listing(root):
    return utterances(root, "LibriTTS", CorpusConfig())


def test_all_subsets_are_listed_with_their_speakers_and_a_text_without_audio_is_rejected(corpus):
    found = listing(corpus(FILES))
    assert [(u.id, u.speaker, u.text) for u in found.utterances] == [
        ("103_1241_000000_000001", "LibriTTS_103", "matthew Cuthbert is surprised"),
        ("84_121123_000007_000001", "LibriTTS_84", "Maximilian."),
    ]
    assert (found.rejected, found.notices) == ([], [])
    text = f"{CHAPTER}/103_1241_000001_000000.normalized.txt"
    reason = f"{text}: no audio file 103_1241_000001_000000 (.wav, .flac, .mp3 ...)"
    rejected = listing(corpus(FILES | {text: "Lost."})).rejected
    assert rejected == [Rejection("103_1241_000001_000000", "corpus", reason)]


def test_the_same_id_in_two_subsets_is_rejected_and_a_single_subset_is_an_error(corpus):
    copy = {name.replace("clean-100", "clean-360"): text for name, text in FILES.items()}
    root = corpus(FILES | copy)
    (rejection,) = listing(root).rejected
    assert "train-clean-100/" in rejection.reason
    assert "train-clean-360/" in rejection.reason
    with pytest.raises(InputError, match=rf"as dataset_path.LibriTTS\); {root} looks"):
        listing(root / "dev-clean")


@pytest.mark.parametrize(
    "files",
    [
        {"train/103/103_1.wav": "", "train/103/103_1.normalized.txt": "Flat."},
        {"train/103/1241/1.wav": "", "train/103/1241/1.original.txt": "Not normalized."},
        {".cache/103/1241/1.wav": "", ".cache/103/1241/1.normalized.txt": "Hidden."},
    ],
)
def test_a_layout_without_utterances_is_an_error_with_what_the_folder_holds(corpus, files):
    message = r"expected <subset>/<speaker>/.* holds 1 \.(wav|txt) \(.*\), 1 \.(wav|txt) \("
    with pytest.raises(InputError, match=message):
        listing(corpus(files))
