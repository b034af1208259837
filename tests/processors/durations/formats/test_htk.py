"""Labels of HTK and HTS."""

import pytest

from processors.alignment import AlignmentError
from processors.durations.formats import Source, find_reader
from tests.processors.durations.formats.examples import read

HTS = "x^x-{}+x=x@1_2/A:0_0_0/B:x-x-x@x-x&x-x"


def test_states_of_full_context_labels_become_phones(tmp_path):
    states = [("sil", 2), ("sil", 3), ("hh", 2), ("hh", 3), ("hh", 4), ("hh", 2), ("pau", 2)]
    lines = [
        f"{n}00000 {n + 1}00000 {HTS.format(name)}[{state}] " + HTS.format(name) * (state == 2)
        for n, (name, state) in enumerate(states)
    ]
    (tmp_path / "u1.lab").write_text("\n".join(lines) + "\n")
    assert [(one.label, one.start_s, one.end_s) for one in read(tmp_path, "htk").phones] == [
        ("hh", pytest.approx(0.02), pytest.approx(0.05)),
        ("hh", pytest.approx(0.05), pytest.approx(0.06)),
    ]


@pytest.mark.parametrize(
    ("name", "phone"),
    [("hh", "hh"), ("sh-iy+t", "iy"), ("iy+t", "iy"), ("sh-iy", "iy"), ("x~x-@@+n=d:1", "@@")],
)
def test_the_context_of_labels_is_dropped(tmp_path, name, phone):
    (tmp_path / "u1.lab").write_text(f"0 1000000 {name}\n")
    assert [one.label for one in read(tmp_path, "htk").phones] == [phone]


def test_a_master_label_file_holds_many_recordings(tmp_path):
    part = '"*/{}.lab"\n0 1000000 hh\n1000000 3000000 ay\n.\n'
    (tmp_path / "all.mlf").write_text("#!MLF!#\n" + part.format("u1") + part.format("u2"))
    first, second = find_reader("htk").entries(Source(tmp_path))
    assert (first.name, second.name) == ("u1", "u2")
    assert second.read().phones[1] == ("ay", 0.1, 0.3)
    (tmp_path / "all.mlf").write_text("#!MLF!#\n" + part.format("u1")[:-2])
    (cut,) = find_reader("htk").entries(Source(tmp_path))
    with pytest.raises(AlignmentError, match=r"all.mlf: no full stop ends .*cut short"):
        cut.read()
