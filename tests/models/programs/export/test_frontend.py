import json
import subprocess
import sys
from pathlib import Path

import pytest

from models.base.assets import Assets
from models.base.registry import load_config
from models.programs.export.folder import write_frontend
from modules.mel import MelConfig
from processors.text import voice_phones
from processors.text.reading import TextReader, has_word
from utils.errors import InputError
from utils.files import write_json

REPOSITORY = Path(__file__).parents[4]
ESPEAK = {"phone_extractor": "espeak", "normalizer": "none"}
APPLES = "Guten Tag, es ist 12 Uhr. Die Äpfel sind rot!"
PRICE = 'Read it: 3 of Xyzzy\'s "apples" (red) cost $2.'
NVIDIA = {"phone_extractor": "nvidia_english", "p_arpabet": 0.5}
GERMAN = "ˈa a aɪ ç d eː ɡ iː ɪ l m n ɔ ɾ s t ts ˈuː ʊ v x ə ˈeː ˈɪ ˈɔ"
# Reads the lines of standard input in a process without PyTorch, outside the repository.
READ = """
import json, sys
for name in ("torch", "config", "processors", "utils", "tqdm"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from frontend import Reader
read = Reader(Path(sys.argv[1]))
for text in map(json.loads, sys.stdin):
    print(json.dumps([[c.phone_ids for c in sentence] for sentence in read(text, sys.argv[2])]))
"""


def pages() -> list[str]:
    """500 texts with numbers, signs and names: lines of this repository's own pages."""
    lines = [
        line.replace("{", " ").replace("}", " ")
        for page in sorted((REPOSITORY / "docs").glob("*.md"))
        for line in page.read_text(encoding="utf-8").splitlines()
        if sum(map(str.isalpha, line)) > 40 and "ˈ" not in line  # no letters of IPA
    ]
    return [line for line in lines[:: len(lines) // 500] if has_word(line)][:500]


def frontend_in(
    folder: Path, text: dict[str, object], vocabulary, inference=None, **assets
) -> TextReader:
    """Writes a voice's front end, and makes the toolkit's own for the same voice."""
    tree = {
        "task": "tts",
        "model_type": "FastPitch",
        "dataset": ["tiny"],
        "dataset_path": {"tiny": "data/tiny"},
        "log_dir": "ckpts/tts",
        "preprocess": {"aligner": "learned", "text": text},
        "inference": {"max_phones": 60, **(inference or {})},
    }
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", tree)
    config = load_config(folder / "config.json")
    of_voice = Assets(MelConfig(), vocabulary, **assets)
    write_frontend(config, of_voice, folder)
    phones = voice_phones.VoicePhones(of_voice.known_phones, "replace")
    return TextReader(config.preprocess.text, 60, phones, config.spoken_p_arpabet)


def read_apart(folder: Path, texts: list[str], language: str) -> list[list[list[list[int]]]]:
    lines = "\n".join(map(json.dumps, texts))
    command = [sys.executable, "-I", "-c", READ, str(folder), language]
    done = subprocess.run(
        command, input=lines, text=True, capture_output=True, check=True, cwd=folder
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_same_ids(folder, reader, vocabulary, texts, language):
    found = read_apart(folder, texts, language)
    for text, ids in zip(texts, found, strict=True):
        sentences = reader(text, language)
        expected = [[vocabulary.ids(spoken.phones) for spoken in row] for row in sentences]
        assert ids == expected, text


def test_texts_of_every_kind_have_the_ids_of_the_toolkit(tmp_path):
    vocabulary, texts = voice_phones.arpabet_vocabulary(), pages()
    assert len(texts) == 500
    reader = frontend_in(tmp_path, {}, vocabulary)
    assert_same_ids(tmp_path, reader, vocabulary, texts, "en-us")


@pytest.mark.parametrize(
    ("text", "vocabulary", "language", "sentence"),
    [
        (ESPEAK, voice_phones.vocabulary_of(GERMAN.split()), "de", APPLES),
        (NVIDIA, voice_phones.nvidia_vocabulary("nvidia_english"), "en-us", PRICE),
    ],
)
def test_other_phone_sets_have_the_ids_of_the_toolkit(
    tmp_path, text, vocabulary, language, sentence
):
    reader = frontend_in(tmp_path, text, vocabulary)
    assert_same_ids(tmp_path, reader, vocabulary, [sentence], language)


def test_the_lexicon_of_the_voice_is_used_and_its_phones_alone(tmp_path):
    vocabulary = voice_phones.arpabet_vocabulary()
    trained = frozenset(vocabulary.symbols) - {"ZH", "<!>"}
    lexicon, text = "arion  ZH AA1 N\n", {"lexicon_path": "gone/lexicon.txt"}
    frontend_in(tmp_path, text, vocabulary, lexicon=lexicon, trained_phones=trained)
    ((phones,),) = read_apart(tmp_path, ["Arion!"], "en-us")[0]
    names = [vocabulary.symbols[i] for i in phones]
    assert names[1:] == ["Z", "AA1", "N", "<.>"]
    with pytest.raises(subprocess.CalledProcessError) as error:
        read_apart(tmp_path, ["..."], "en-us")
    assert "there is no word" in error.value.stderr


def test_other_scripts_are_transliterated_or_refused_as_the_voice_says(tmp_path):
    vocabulary = voice_phones.arpabet_vocabulary()
    reader = frontend_in(tmp_path / "speak", {}, vocabulary)
    assert_same_ids(tmp_path / "speak", reader, vocabulary, ["Привет"], "en-us")
    strict = {"unknown_characters": "refuse"}
    frontend_in(tmp_path / "refuse", {}, vocabulary, inference=strict)
    with pytest.raises(subprocess.CalledProcessError) as error:
        read_apart(tmp_path / "refuse", ["Привет"], "en-us")
    assert "not a letter of English; write it in words" in error.value.stderr


def test_a_voice_without_phones_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"vocabulary\.json"):
        frontend_in(tmp_path, {}, None)
