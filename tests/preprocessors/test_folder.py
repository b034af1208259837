import pytest

from config.preprocess import CorpusConfig
from preprocessors.folder import utterances
from utils.errors import InputError


def listing(root, **options):
    return utterances(root, "Mine", CorpusConfig(**options))


def test_two_columns_are_id_and_text(corpus):
    root = corpus({"metadata.csv": "a|One.\n", "wavs/a.wav": ""})
    (utterance,) = listing(root).utterances
    assert (utterance.id, utterance.text, utterance.speaker) == ("a", "One.", "Mine")


def test_three_columns_are_id_text_and_normalized_text(corpus):
    root = corpus({"metadata.csv": "a|1.|One.\n", "wavs/a.wav": ""})
    assert listing(root).utterances[0].text == "One."


def test_audio_may_lie_beside_the_table_or_in_wavs_or_where_the_id_says(corpus):
    names = ["a.wav", "wavs/b.flac", "anna/001.wav", "wavs/bob/001.FLAC"]
    table = "a|1\nb.flac|2\nanna/001.wav|3\nbob/001|4\n"
    root = corpus({"metadata.csv": table, **dict.fromkeys(names, "")})
    found = {u.id: u.audio.relative_to(root).as_posix() for u in listing(root).utterances}
    assert found == dict(zip(["a", "b", "anna_001", "bob_001"], names, strict=True))
    assert listing(root).notices == []


def test_a_speaker_column_names_the_speakers(corpus):
    root = corpus({"metadata.csv": "a|Anna|One.\nb||Two.\n", "a.wav": "", "b.wav": ""})
    found = listing(root, columns=("id", "speaker", "text"), speaker="Somebody").utterances
    assert [u.speaker for u in found] == ["Mine_Anna", "Somebody"]


def test_columns_of_other_things_are_left_out_of_account(corpus):
    root = corpus({"list.txt": "One.\t3.5\ta\n", "a.wav": ""})
    found = listing(root, table="list.txt", delimiter="\t", columns=("text", "-", "id"))
    assert [(u.id, u.text, u.source) for u in found.utterances] == [("a", "One.", "list.txt:1")]


def test_commas_separate_and_quotes_hold_together(corpus):
    root = corpus({"metadata.csv": 'a,"One, ""two""."\n', "a.wav": ""})
    assert listing(root, delimiter=",").utterances[0].text == 'One, "two".'


def quoted_table(corpus, lines, **options):
    rows = {f"{id}.wav": "" for id in "abc"}
    found = listing(corpus({"metadata.csv": "\n".join(lines) + "\n", **rows}), **options)
    return {utterance.id: utterance.text for utterance in found.utterances}


@pytest.mark.parametrize("mark", ["|", "\t", ";"])
def test_quotes_of_all_cells_are_removed(corpus, mark):
    lines = [f'"id"{mark}"text"', f'"a"{mark}"One{mark} ""two""."', f'"b"{mark}"Three."']
    texts = quoted_table(corpus, lines, delimiter=mark)
    assert texts == {"a": f'One{mark} "two".', "b": "Three."}


def test_quotes_of_a_column_are_removed_below_a_first_line_without(corpus):
    assert quoted_table(corpus, ["id|text", 'a|"One."', 'b|"Two."']) == {"a": "One.", "b": "Two."}


def test_quotes_are_removed_where_only_the_cells_that_need_them_have_them(corpus):
    lines = ["a|One.", 'b|"Two | three."', 'c|"""Four,"" he said."']
    assert quoted_table(corpus, lines) == {
        "a": "One.",
        "b": "Two | three.",
        "c": '"Four," he said.',
    }


@pytest.mark.parametrize(
    "lines",
    [['a|"One," he said, "two."', 'b|"Three."'], ['a|"One."', 'b|"Two'], ['a|5" pipe', 'b|"Two."']],
)
def test_quotes_of_the_text_are_kept(corpus, lines):
    assert quoted_table(corpus, lines) == dict(line.split("|") for line in lines)


@pytest.mark.parametrize("delimiter", ["|", ",", "\t"])
@pytest.mark.parametrize("mark", ["\0", "\x1b", "\x7f", "\x92"])
def test_control_characters_in_a_text_are_rejected_with_their_line(corpus, mark, delimiter):
    table = f"a{delimiter}One.\nb{delimiter}Two{mark}three.\n"
    found = listing(corpus({"metadata.csv": table, "a.wav": "", "b.wav": ""}), delimiter=delimiter)
    assert [utterance.id for utterance in found.utterances] == ["a"]
    (rejection,) = found.rejected
    shown = f"Two\\x{ord(mark):02x}three."
    assert rejection.reason.startswith(
        f"metadata.csv:2: the text holds control characters: {shown}; remove them, or set"
        " preprocess.corpus.Mine.encoding"
    )


def test_names_of_columns_in_the_first_line_are_noticed_and_no_utterance(corpus):
    root = corpus({"metadata.csv": "ID|Text\na|One.\n", "a.wav": ""})
    found = listing(root)
    assert [u.id for u in found.utterances] == ["a"]
    assert found.notices == ["metadata.csv:1: names of the columns, not an utterance"]


def test_the_first_line_may_name_the_columns(corpus):
    root = corpus({"metadata.csv": "id|Speaker|text\na|Anna|One.\n", "a.wav": ""})
    (utterance,) = listing(root).utterances
    assert (utterance.speaker, utterance.text) == ("Mine_Anna", "One.")


@pytest.mark.parametrize(
    ("delimiter", "name"), [("\t", "tabs"), (",", "commas"), (";", "semicolons")]
)
def test_other_separators_are_found_in_the_table(corpus, delimiter, name):
    table = f"a{delimiter}One | two.\nb{delimiter}Three.\nc{delimiter}Four.\n"
    root = corpus({"metadata.csv": table, "a.wav": "", "b.wav": "", "c.wav": ""})
    found = listing(root)
    assert [u.text for u in found.utterances] == ["One | two.", "Three.", "Four."]
    assert found.notices == [f"metadata.csv: its columns are separated by {name}"]


def test_a_separator_that_some_lines_lack_is_kept(corpus):
    root = corpus(
        {"metadata.csv": "a|One, two.\nb|Three, four.\nc, five\n", "a.wav": "", "b.wav": ""}
    )
    found = listing(root)
    assert [u.id for u in found.utterances] == ["a", "b"]
    assert found.rejected[0].reason == "metadata.csv:3: 1 column, expected 2 (id, text)"


def test_usual_words_for_the_columns_are_understood_and_others_left_out(corpus):
    table = 'client_id,Path,sentence,up votes\nanna,clips/a.wav,"One, two.",3\n'
    root = corpus({"metadata.csv": table, "clips/a.wav": ""})
    (utterance,) = listing(root).utterances
    assert (utterance.id, utterance.speaker, utterance.text) == (
        "clips_a",
        "Mine_anna",
        "One, two.",
    )


def test_the_words_of_a_first_line_are_no_utterance_where_the_config_names_the_columns(corpus):
    root = corpus({"metadata.csv": "File|Transcript\na|One.\n", "a.wav": ""})
    found = listing(root, columns=("id", "text"))
    assert [u.id for u in found.utterances] == ["a"]
    assert found.rejected == []


def test_two_paths_that_give_the_same_id_are_rejected(corpus):
    table = "x/a|One.\nx_a|Two.\nb|Three.\n"
    root = corpus({"metadata.csv": table, "x/a.wav": "", "x_a.wav": "", "b.wav": ""})
    (rejection,) = listing(root).rejected
    assert "the id x_a occurs 2 times: metadata.csv:1, metadata.csv:2" in rejection.reason


@pytest.mark.parametrize("id", ["../x", "wavs/../../x", r"..\x", r"C:\wavs\..\..\x"])
def test_a_path_that_leaves_the_folder_is_rejected(corpus, id):
    root = corpus({"metadata.csv": f"{id}|Evil.\na|One.\n", "a.wav": "", "../x.wav": ""})
    (rejection,) = listing(root).rejected
    assert rejection.id == id
    assert "is not the name of a file in the corpus folder" in rejection.reason


def test_a_utf_16_table_is_named_as_such(corpus):
    message = r"metadata\.csv is UTF-16; save it as UTF-8, or set .*Mine\.encoding to utf-16"
    for encoding in ("utf-16-le", "utf-16"):
        root = corpus({"metadata.csv": "a|Grüße\n".encode(encoding), "a.wav": ""})
        with pytest.raises(InputError, match=message):
            listing(root)
    assert listing(root, encoding="utf-16").utterances[0].text == "Grüße"


def test_a_first_line_of_unknown_names_is_rejected_with_the_known_ones(corpus):
    root = corpus({"metadata.csv": "name|words\na|One.\nb|Two.\n", "a.wav": ""})
    other, name = listing(root).rejected
    assert name.reason.endswith("; if the line names the columns, name them id and text")
    assert other.reason == "metadata.csv:3: no audio file b (.wav, .flac, .mp3 ...)"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("id", "txet"), r"columns: unknown column 'txet'; known: .*did you mean text\?"),
        (("id", "text", "id"), "each column once"),
        (("id", "speaker"), 'needs "id" and "text"'),
        (("text", "normalized"), 'needs "id" and "text"'),
    ],
)
def test_columns_that_make_no_sense_are_an_error_that_names_the_key(corpus, columns, message):
    root = corpus({"metadata.csv": "a|One.\n", "a.wav": ""})
    with pytest.raises(
        InputError, match=rf"preprocess\.corpus\.Mine\.columns.*{message}|{message}"
    ):
        listing(root, columns=columns)


@pytest.mark.parametrize("delimiter", ["", "||"])
def test_a_delimiter_of_another_length_is_an_error_that_names_the_key(corpus, delimiter):
    with pytest.raises(
        InputError, match=r"preprocess\.corpus\.Mine\.delimiter is '.*'; expected one character"
    ):
        listing(corpus({"metadata.csv": "a|One.\n"}), delimiter=delimiter)


@pytest.mark.parametrize(
    ("table", "keys", "message"),
    [
        ('a,One\nb,"Two\n', {"delimiter": ","}, r"csv:2: not a line of cells between commas"),
        ("a|b|c|One.\n", {}, r"4 columns; .* first line, .* or in .*Mine\.columns"),
        (
            "a|Anna|One.\nb|Anna|Two.\nc|Bob|Three.\nd|Bob|Four.\n",
            {},
            r"looks like speakers \(Anna, Bob\).*Mine\.columns",
        ),
        ("id|text\n", {}, r"metadata\.csv: no utterance below the names"),
        (None, {}, r"Mine: expected the table metadata\.csv in"),
        ("\n", {}, r"metadata\.csv is empty"),
    ],
    ids=["open quote", "columns", "speakers", "names alone", "missing", "empty"],
)
def test_a_table_that_cannot_be_read_is_an_error_with_the_remedy(corpus, table, keys, message):
    files = {f"{id}.wav": "" for id in "abcd"}
    root = corpus(files if table is None else files | {"metadata.csv": table})
    with pytest.raises(InputError, match=message):
        listing(root, **keys)
