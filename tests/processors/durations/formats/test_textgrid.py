"""TextGrids of any program, and that Praat opens those that are exported."""

import shutil

import parselmouth
import pytest

from processors.alignment import AlignmentError
from processors.alignment.textgrid import Tiers
from processors.durations.formats import Source, find_reader, find_writer
from tests.processors.durations.formats.examples import DEMO, SPEECH, read


def test_real_textgrids_of_other_tiers_are_read_by_name(tmp_path):
    shutil.copy(DEMO / "TextGrid/LJ001-0002.TextGrid", tmp_path)
    path = tmp_path / "LJ001-0002.TextGrid"
    usual = read(tmp_path, "textgrid")
    text = path.read_text().replace('"phones"', '"Segmente"').replace('"words"', '"ORT-MAU"')
    path.write_text(text)
    with pytest.raises(AlignmentError, match=r"expected a tier `phones`, found ORT-MAU, Segmente"):
        read(tmp_path, "textgrid")
    (entry,) = find_reader("textgrid").entries(Source(tmp_path, tiers=Tiers("segmente", "ort-mau")))
    assert entry.read() == usual
    (entry,) = find_reader("textgrid").entries(Source(tmp_path, tiers=Tiers("Phon")))
    with pytest.raises(AlignmentError, match=r"expected a tier `Phon`, found ORT-MAU, Segmente"):
        entry.read()


@pytest.mark.parametrize(
    ("tiers", "kind", "wanted"),
    [(Tiers("foo"), "phones", "foo"), (Tiers(words="foo"), "words", "foo")],
)
def test_the_usual_tier_does_not_replace_the_one_that_is_named(tmp_path, tiers, kind, wanted):
    shutil.copy(DEMO / "TextGrid/LJ001-0002.TextGrid", tmp_path)
    (entry,) = find_reader("textgrid").entries(Source(tmp_path, tiers=tiers))
    message = rf"no {kind}; expected a tier `{wanted}`, found words, phones"
    with pytest.raises(AlignmentError, match=message):
        entry.read()


def tiers_in_praat(path):
    """Labels and times of every tier, as Praat sees them."""
    call = parselmouth.praat.call
    grid = parselmouth.read(str(path))
    return {
        call(grid, "Get tier name", tier): [
            (
                call(grid, "Get label of interval", tier, n),
                round(call(grid, "Get start time of interval", tier, n), 4),
                round(call(grid, "Get end time of interval", tier, n), 4),
            )
            for n in range(1, call(grid, "Get number of intervals", tier) + 1)
        ]
        for tier in range(1, call(grid, "Get number of tiers") + 1)
    }


def test_praat_opens_textgrids_and_sees_every_phone(tmp_path):
    find_writer("textgrid").write(tmp_path, [SPEECH])
    tiers = tiers_in_praat(tmp_path / "u1.TextGrid")
    assert list(tiers) == ["words", "phones", "pauses"]
    assert [one for one in tiers["words"] if one[0]] == [('"hm"', 0.2, 0.3), ("m m", 0.3, 0.5)]
    assert tiers["phones"] == [
        ("", 0.0, 0.2),
        ("HH", 0.2, 0.3),
        ("M", 0.3, 0.3001),  # Praat has no intervals of no length
        ("", 0.3001, 0.3002),
        ("M", 0.3002, 0.5),
        ("", 0.5, 1.0),
    ]
    assert [one for one in tiers["pauses"] if one[0]] == [
        ("<sil>", 0.1, 0.2),
        ("<,>", 0.3001, 0.3002),
        ("<.>", 0.5, 0.6),
    ]
