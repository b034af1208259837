"""CTM of phones and words."""

import pytest

from processors.alignment.aligner import AlignmentError
from processors.durations.sources import durations_in
from tests.processors.durations.examples import read


def test_a_folder_of_ctm_has_words_too_and_places_in_words_are_dropped(tmp_path):
    (tmp_path / "phones.ctm").write_text("u1 1 0.20 0.10 HH_B\nu1 1 0.30 0.10 AY1_E\n;; a note\n")
    (tmp_path / "words.ctm").write_text("u1 1 0.20 0.20 hi 0.99\n")
    grid = read(tmp_path, "ctm")
    assert [phone.label for phone in grid.phones] == ["HH", "AY1"]
    assert grid.words == [("hi", 0.2, 0.4)]


@pytest.mark.parametrize(
    ("line", "broken", "names"),
    [
        ("u1 1 0.3 zz AY1", "u1", ["u1", "u2"]),
        ("u1 1 0.3", "u1", ["u1", "u2"]),
        ("u", "u1", ["u1", "u2"]),  # cut within the name
        ("u3 1 0.3 zz AY1", "u3", ["u1", "u2", "u3"]),
    ],
)
def test_a_broken_line_of_ctm_is_a_fault_of_its_utterance_alone(tmp_path, line, broken, names):
    path = tmp_path / "all.ctm"
    path.write_text(f"u1 1 0.2 0.1 HH\n{line}\nu2 1 0.1 0.2 Y\n")
    found = {entry.name: entry for entry in durations_in(path).entries}
    assert sorted(found) == names
    with pytest.raises(AlignmentError, match=rf"all.ctm:2: expected .*, found '{line}'; was it"):
        found[broken].read()
    assert found["u2"].read().phones == [("Y", 0.1, pytest.approx(0.3))]


def test_a_broken_line_of_the_words_of_ctm_is_a_fault_too(tmp_path):
    (tmp_path / "phones.ctm").write_text("u1 1 0.20 0.10 HH\n")
    (tmp_path / "words.ctm").write_text("u1 1 0.20 hi\n")
    (entry,) = durations_in(tmp_path).entries
    assert entry.path == tmp_path / "words.ctm"
    with pytest.raises(AlignmentError, match=r"words.ctm:1: expected"):
        entry.read()
