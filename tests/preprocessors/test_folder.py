"""Names, formats and columns of tables as people have them."""

import json
import unicodedata

import pytest

from config.preprocess import CorpusConfig
from preprocessors import ljspeech
from preprocessors.folder import utterances
from preprocessors.manifest import is_safe_id, read_utterances, write_manifest
from utils.errors import InputError

NAMES = ["anna", "bob", "carl", "dora"]
TWO = [("a", "Mine", "One, two."), ("b", "Mine", "Three.")]


def listing(root, **options):
    return utterances(root, "Mine", CorpusConfig(**options))


@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        ("a|One.", {}, [("a", "Mine", "One.")]),
        ("a|1.|One.\nb||2.", {}, [("a", "Mine", "One."), ("b", "Mine", "2.")]),
        # the columns of the config, of which "-" is not read, or of the first line
        ("Anna|3.5|a|One.\n|1.5|b|Two.",
         {"columns": ("speaker", "-", "id", "text"), "speaker": "Bob"},
         [("a", "Mine_Anna", "One."), ("b", "Bob", "Two.")]),
        ("File|Transcript\na|One.", {"columns": ("id", "text")}, [("a", "Mine", "One.")]),
        ("id|Speaker|text\na|Anna|One.", {}, [("a", "Mine_Anna", "One.")]),
        ('client_id,Path,sentence,up votes\nanna,wavs/e.wav,"One, two.",3', {},
         [("wavs_e", "Mine_anna", "One, two.")]),
        ("id|text|path\n17|One.|wavs/e.wav", {}, [("wavs_e", "Mine", "One.")]),
        # path, speaker, text; numbers and their words are no speakers
        ("a.wav|1|A text.\nb.wav|1|B text.\nc.wav|2|C text.\nd.wav|2|D text.", {},
         [("a", "Mine_1", "A text."), ("b", "Mine_1", "B text."), ("c", "Mine_2", "C text."),
          ("d", "Mine_2", "D text.")]),
        ("\n".join(f"{id}.wav|{who}|Of {id}." for id, who in zip("abcd", NAMES, strict=True)), {},
         [(id, f"Mine_{who}", f"Of {id}.") for id, who in zip("abcd", NAMES, strict=True)]),
        ("a.wav|1|one\nb.wav|2|two", {}, [("a", "Mine", "one"), ("b", "Mine", "two")]),
        # quotes of all cells, of a column, and of the cells that need them
        *((f'"id"{mark}"text"\n"a"{mark}"One{mark} ""two""."', {"delimiter": mark},
           [("a", "Mine", f'One{mark} "two".')]) for mark in "|\t;,"),
        ('id|text\na|"One, two."\nb|"Three."', {}, TWO),
        ('a|"""One,"" two | three."\nb|Three.', {},
         [("a", "Mine", '"One," two | three.'), ("b", "Mine", "Three.")]),
        # quotes of the text
        *((table, {}, [(line[0], "Mine", line[2:]) for line in table.split("\n")])
          for table in ('a|"One," he said, "two."\nb|"Three."', 'a|5" pipe\nb|"Two."',
                        'a|"One."\nb|"Two')),
        # other separators than that of the config, and one that a line lacks
        *((f"a{mark}One, two.\nb{mark}Three.", {}, TWO) for mark in "\t;"),
        ("a,One | two.\nb,Three.\nc,4", {},
         [("a", "Mine", "One | two."), TWO[1], ("c", "Mine", "4")]),
        ("a|One, two.\nb|Three.\ne, five", {}, TWO),
    ],
)  # fmt: skip
def test_columns_separators_and_quotes_of_tables_are_understood(corpus, table, options, expected):
    files = dict.fromkeys(["a.wav", "b.wav", "c.wav", "d.wav", "wavs/e.wav"], "")
    found = listing(corpus({"metadata.csv": f"{table}\n", **files}), **options).utterances
    assert [(u.id, u.speaker, u.text) for u in found] == expected


def test_an_empty_normalized_text_is_that_of_the_second_cell(corpus):
    files = {f"wavs/{id}.wav": "" for id in "abc"}
    root = corpus({"metadata.csv": "a|1.|One.\nb|Two.|\nc||Three.\n", **files})
    texts = [u.text for u in ljspeech.utterances(root, "LJ", CorpusConfig()).utterances]
    assert texts == ["One.", "Two.", "Three."]


@pytest.mark.parametrize(
    ("table", "reports"),
    [
        ("ID|Text\na|One.", ["metadata.csv:1: names of the columns, not an utterance"]),
        ("id,mood,text,age\na,glad,One.,7", ["metadata.csv: columns that are not read: mood, age"]),
        *((f"a{mark}One.", [f"metadata.csv: its columns are separated by {name}"])
          for mark, name in (("\t", "tabs"), (",", "commas"), (";", "semicolons"))),
        ("a|One.\nc, five", ["metadata.csv:2: 1 column, expected 2 (id, text)"]),
        ("name|words\na|One.\nc|Two.", ["; if the line names the columns, name them id and text",
                                        "metadata.csv:3: no audio file c (.wav, .flac, .mp3 ...)"]),
        ("x/a|One.\nx_a|Two.\nb|Three.", ["the id x_a occurs 2 times: metadata.csv:1, metad"]),
        *((f"{id}|Evil.\na|One.", ["is not the name of a file in the corpus folder"])
          for id in ("../x", "wavs/../../x", r"..\x", r"C:\wavs\..\..\x")),
        ("a|One.\n/etc/secret.wav|Two.", ["metadata.csv:2: no audio file /etc/secret"]),
        *((f"a{delimiter}One.\nb{delimiter}Two{mark}three.",
           [f"metadata.csv:2: the text holds control characters: Two\\x{ord(mark):02x}three.; "
            "remove them, or set preprocess.corpus.Mine.encoding"])
          for delimiter in "|,\t" for mark in "\0\x1b\x7f\x92"),
    ],
)  # fmt: skip
def test_what_is_odd_is_noticed_and_what_cannot_be_used_is_rejected(corpus, table, reports):
    names = ["a.wav", "b.wav", "x/a.wav", "x_a.wav", "../x.wav"]
    found = listing(corpus({"metadata.csv": f"{table}\n", **dict.fromkeys(names, "")}))
    said = found.notices + [rejection.reason for rejection in found.rejected]
    for report in reports:
        assert any(report in line for line in said), said


def test_audio_may_lie_beside_the_table_or_in_wavs_or_where_the_id_says(corpus):
    names = ["a.wav", "wavs/b.flac", "anna/001.wav", "wavs/bob/001.FLAC"]
    table = "a|1\nb.flac|2\nanna/001.wav|3\nbob/001|4\n"
    root = corpus({"metadata.csv": table, **dict.fromkeys(names, "")})
    found = {u.id: u.audio.relative_to(root).as_posix() for u in listing(root).utterances}
    assert found == dict(zip(["a", "b", "anna_001", "bob_001"], names, strict=True))
    assert listing(root).notices == []


def test_a_utf_16_table_is_named_as_such(corpus):
    message = r"metadata\.csv is UTF-16; save it as UTF-8, or set .*Mine\.encoding to utf-16"
    for encoding in ("utf-16-le", "utf-16"):
        root = corpus({"metadata.csv": "a|Grüße\n".encode(encoding), "a.wav": ""})
        with pytest.raises(InputError, match=message):
            listing(root)
    assert listing(root, encoding="utf-16").utterances[0].text == "Grüße"


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ('a,One\nb,"Two\n', {"delimiter": ","}, r"csv:2: not a line of cells between commas"),
        ("a|b|c|One.\n", {}, r"4 columns; .* first line, .* or in .*Mine\.columns"),
        ("a|Anna|One.\nb|Anna|Two.\nc|Bob|Three.\nd|Bob|Four.\n", {},
         r"looks like speakers \(Anna, Bob\).*Mine\.columns"),
        ("a.wav|1|word 1\nb.wav|2|word 2\nc.wav|1|word 1\nd.wav|2|word 2\n", {}, "like speakers"),
        ("id|text\n", {}, r"metadata\.csv: no utterance below the names"),
        (None, {}, r"Mine: expected the table metadata\.csv in"),
        ("\n", {}, r".*/\S+: metadata\.csv is empty"),
        *(("a|One.\n", {"delimiter": mark}, r"Mine\.delimiter is '.*'; expected one character")
          for mark in ("", "||")),
        *(("a|One.\n", {"columns": columns}, rf"preprocess\.corpus\.Mine\.columns: {message}")
          for columns, message in (
            (("id", "txet"), r"unknown column 'txet'; known: .*did you mean text\?"),
            (("id", "text", "id"), ".*each column once"),
            (("id", "speaker"), 'needs "id" and "text"'),
            (("text", "normalized"), 'needs "id" and "text"'))),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_read_is_an_error_with_the_remedy(corpus, table, options, message):
    files = {f"{id}.wav": "" for id in "abcd"}
    root = corpus(files if table is None else files | {"metadata.csv": table})
    with pytest.raises(InputError, match=message):
        listing(root, **options)


def test_texts_next_to_recordings_are_no_table(corpus):
    root = corpus({"wavs/b.wav": "", "wavs/b.txt": "One.", "wavs/notes.txt": ""})
    match = r"table metadata\.csv with a line .*b\|.*b\.txt is not read"
    with pytest.raises(InputError, match=match):
        listing(root)


def files_of(root, **options):
    """Audio files by text."""
    found = listing(root, **options).utterances
    return {u.text: u.audio.relative_to(root).as_posix() for u in found}


@pytest.mark.parametrize(
    "name", ["Recording (3)", "clip 2", "take[1]", "Été", "录音 7", "it's, well; fine", "-x"]
)
def test_a_name_that_is_no_id_gets_one_and_is_stored_beside_it(corpus, tmp_path, name):
    table = f"{name}|One.\nb|Two.\n"
    found = listing(corpus({"metadata.csv": table, f"{name}.wav": "", "b.wav": ""})).utterances
    names = {u.text: (u.audio.stem, u.name) for u in found}
    assert names == {"One.": (name, name), "Two.": ("b", "")}
    assert all(is_safe_id(u.id) for u in found)
    write_manifest(tmp_path / "manifest.jsonl", found)
    assert list(read_utterances(tmp_path).values()) == found


def test_different_names_have_different_ids(corpus):
    names = ["clip 2", "clip_2", "clip  2", "clip(2)", "clip-2", "clip.2", "clîp 2"]
    table = "".join(f"{name}|{n}\n" for n, name in enumerate(names))
    found = listing(corpus({"metadata.csv": table, **{f"{name}.wav": "" for name in names}}))
    assert len({u.id for u in found.utterances}) == len(names)


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC")])
def test_an_accent_is_found_however_a_disk_writes_it(corpus, forms):
    in_table, on_disk = (unicodedata.normalize(form, "Zoë réglée") for form in forms)
    root = corpus({"metadata.csv": f"{in_table}|One.\n", f"{on_disk}.wav": ""})
    assert list(files_of(root)) == ["One."]


def test_relative_paths_of_any_system_are_read(corpus):
    table = "./wavs/a.wav|1\nwavs\\b.wav|2\n.\\wavs\\c|3\nwavs//d.wav|4\n"
    names = [f"wavs/{name}.wav" for name in "abcd"]
    root = corpus({"metadata.csv": table, **dict.fromkeys(names, "")})
    assert files_of(root) == dict(zip("1234", names, strict=True))
    assert listing(root).notices == []
    root = corpus({"metadata.csv": "a.flac|1\n", "a.wav": "", "a.flac": ""})
    assert files_of(root) == {"1": "a.flac"}  # the suffix chooses


def test_absolute_paths_into_the_corpus_are_read_and_others_not_opened(corpus, tmp_path):
    (tmp_path / "secret.wav").touch()
    root = corpus({"metadata.csv": f"a|1\n{tmp_path}/secret.wav|2\n", "a.wav": ""})
    (rejection,) = listing(root).rejected
    assert f"metadata.csv:2: no audio file {tmp_path}/secret" in rejection.reason
    (tmp_path / "link").symlink_to(tmp_path / "corpus")
    table = f"{tmp_path}/corpus/wavs/a.wav|1\n{tmp_path}/link/b.flac|2\n"
    root = corpus({"metadata.csv": table, "wavs/a.wav": "", "b.flac": ""})
    assert files_of(root)["1"] == "wavs/a.wav"
    assert files_of(tmp_path / "link")["2"] == "b.flac"


@pytest.mark.parametrize(
    "start", ["C:\\Users\\Anna\\My speech\\", "D:/x/", "/mnt/speech/", "\\\\nas\\speech\\"]
)
def test_the_folders_of_another_computer_are_left_out(corpus, start):
    table = f"{start}anna/a.wav|1\n{start}bob/a.wav|2\n"
    root = corpus({"metadata.csv": table, "anna/a.wav": "", "bob/a.wav": ""})
    assert files_of(root) == {"1": "anna/a.wav", "2": "bob/a.wav"}
    (notice,) = listing(root).notices
    assert "which is left out: recordings are looked for in" in notice
    assert [u.id for u in listing(root).utterances] == ["anna_a", "bob_a"]


@pytest.mark.parametrize("suffix", [".wav", ".FLAC", ".mp3", ".ogg", ".opus", ".aiff", ".w64"])
def test_every_format_of_the_audio_library_is_found(corpus, suffix):
    root = corpus({"metadata.csv": f"a|1\nb{suffix}|2\n", f"a{suffix}": "", f"wavs/b{suffix}": ""})
    assert list(files_of(root)) == ["1", "2"]


@pytest.mark.parametrize("suffix", [".m4a", ".aac", ".webm"])
def test_a_format_that_cannot_be_read_is_rejected_with_what_converts_it(corpus, suffix):
    files = {f"a{suffix}": "", "b.wav": "", f"b{suffix}": ""}  # b was converted
    found = listing(corpus({"metadata.csv": f"a{suffix}|1\nb{suffix}|2\n", **files}))
    assert [u.audio.name for u in found.utterances] == ["b.wav"]
    assert f"a{suffix}: {suffix} files cannot be read; convert them" in found.rejected[0].reason
    assert found.notices == []


@pytest.mark.parametrize(
    "names", [("a.wav", "a.flac"), ("a.wav", "wavs/a.wav"), ("a.mp3", "a.ogg"), ("a.WAV", "a.wav")]
)
def test_two_recordings_of_one_id_are_rejected_by_the_names_of_both(corpus, names):
    root = corpus({"metadata.csv": "a|1\nb|2\n", "b.wav": "", **dict.fromkeys(names, "")})
    (rejection,) = listing(root).rejected
    assert all(str(root / name) in rejection.reason for name in names)
    assert "remove or rename all but one" in rejection.reason


def test_file_lists_of_other_toolkits_are_read(corpus):
    root = corpus({"list.txt": "DUMMY1/a.wav|One, two.\nDUMMY1/b.wav|Three.\n", "wavs/a.wav": ""})
    found = listing(root, table="list.txt")
    assert [(u.id, u.text) for u in found.utterances] == [("a", "One, two.")]
    assert "no audio file DUMMY1/b" in found.rejected[0].reason


@pytest.mark.parametrize(
    ("cell", "phones"),
    [
        ("HH AY1 DH EH1 R", "{HH AY1 DH EH1 R}"),
        ("{HH AY1 sp DH EH1 R}", "{HH AY1}, {DH EH1 R}"),
        ("sil HH AY1 / DH EH1 R ? sil", "{HH AY1} {DH EH1 R}?"),
        ("HH AY1  DH EH1 R", "{HH AY1} {DH EH1 R}"),
        ("HH AY1 | DH EH1 R", "{HH AY1} {DH EH1 R}"),  # the bar separates no columns
        ("", ""),
    ],
)
def test_phones_of_a_column_are_spoken_in_place_of_the_text(corpus, cell, phones):
    root = corpus({"metadata.csv": f"id\ttext\tphones\na\tHi there.\t{cell}\n", "a.wav": ""})
    (utterance,) = listing(root).utterances
    assert (utterance.text, utterance.phones) == ("Hi there.", phones)
    assert utterance.spoken == (phones or "Hi there.")
    root = corpus({"metadata.csv": "a|HH AY1\n"})  # phones alone
    (utterance,) = listing(root, columns=("id", "phones")).utterances
    assert utterance.text == utterance.spoken == "{HH AY1}"


def test_json_lines_are_read_where_there_is_no_csv(corpus):
    rows = [
        {"file_name": "a.mp3", "transcription": "One.", "speaker_id": 3, "duration": 1.5},
        {"file_name": "b c.wav", "transcription": "Two.", "speaker_id": None},
    ]
    table = "".join(json.dumps(row) + "\n" for row in rows)
    found = listing(corpus({"metadata.jsonl": table, "a.mp3": "", "b c.wav": ""}))
    assert {u.text: u.speaker for u in found.utterances} == {"One.": "Mine_3", "Two.": "Mine"}
    assert found.notices == ["metadata.jsonl: columns that are not read: duration"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("not json", "not a JSON object, as"),
        ('["b.wav", "Two."]', "not a JSON object, as"),
        ("[" * 100_000, "not a JSON object, as"),
        ('{"file_name": "b.wav", "text": {"a": 1}}', "text is {'a': 1}, expected a text"),
        ('{"file_name": true, "text": "Two."}', "file_name is True, expected a text"),
        ('{"file_name": "b.wav", "text": "\\ud800"}', "text is '\\ud800', expected a text"),
        ('{"text": "Two."}', "is not the name of a file in the corpus folder"),
        ('{"file_name": "b.wav"}', "the text is empty"),
    ],
)
def test_a_bad_json_line_is_rejected_with_its_place(corpus, line, reason):
    table = f'{{"file_name": "a.wav", "text": "One."}}\n{line}\n'
    found = listing(corpus({"metadata.jsonl": table, "a.wav": "", "b.wav": ""}))
    assert [u.id for u in found.utterances] == ["a"]
    assert found.rejected[0].reason.startswith("metadata.jsonl:2: ")
    assert reason in found.rejected[0].reason


def test_json_lines_without_recordings_or_texts_are_an_error_with_their_keys(corpus):
    with pytest.raises(InputError, match=r"metadata\.jsonl: needs file_name and text, found x, y"):
        listing(corpus({"metadata.jsonl": '{"x": 1, "y": 2}\n'}))


def test_tables_in_the_folders_of_a_corpus_are_read_together(corpus):
    head = "file_name,text\n"
    tables = {"train/metadata.csv": f"{head}a.wav,One.\n", "test/metadata.csv": f"{head}a.wav,2.\n"}
    root = corpus({**tables, "train/a.wav": "", "test/a.wav": ""})
    assert files_of(root) == {"One.": "train/a.wav", "2.": "test/a.wav"}
    sources = [u.source for u in listing(root).utterances]
    assert sources == ["test/metadata.csv:2", "train/metadata.csv:2"]
