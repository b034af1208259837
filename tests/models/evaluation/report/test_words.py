from models.evaluation.report.words import mark


def test_what_was_heard_as_written_has_no_mark():
    assert mark("the cat sat", "the cat sat") == [("the", ""), ("cat", ""), ("sat", "")]


def test_words_that_are_misread_repeated_and_left_out_are_marked_where_they_are():
    assert mark("the cat sat on a mat", "the the hat sat on mat") == [
        ("the", ""),
        ("cat", "missing"),
        ("the", "extra"),
        ("hat", "extra"),
        ("sat", ""),
        ("on", ""),
        ("a", "missing"),
        ("mat", ""),
    ]


def test_silence_misses_every_word():
    assert mark("the cat", "") == [("the", "missing"), ("cat", "missing")]
    assert mark("", "") == []
