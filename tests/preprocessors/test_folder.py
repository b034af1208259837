import pytest

from config.preprocess import CorpusConfig
from preprocessors import ljspeech
from preprocessors.folder import utterances
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
