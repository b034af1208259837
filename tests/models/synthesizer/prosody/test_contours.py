import pytest
import torch

from models.synthesizer.prosody.contours import PitchContour, contour_of
from utils.errors import InputError

MEAN = torch.tensor([[1.0], [1.0]])


def factors(contour: PitchContour, spans: list[list[float]], lengths: list[int]):
    """What the contour multiplies phones by, at the valid positions of each clause."""
    ones = torch.ones(len(spans), max(lengths))
    changed = contour.over(torch.tensor(spans))(ones, MEAN, torch.tensor(lengths))
    return [row[:length].tolist() for row, length in zip(changed, lengths, strict=True)]


def test_a_ramp_is_nvidias_sample():
    (found,) = factors(contour_of("ramp:0.5:1.5"), [[0, 1]], [8])
    assert found == pytest.approx([i / 8 + 0.5 for i in range(8)])


def test_a_contour_goes_on_from_one_clause_to_the_next():
    contour = PitchContour((1.0, 3.0, 2.0), "")
    (whole,) = factors(contour, [[0, 1]], [8])
    first, second = factors(contour, [[0, 3 / 8], [3 / 8, 1]], [3, 5])
    assert first + second == pytest.approx(whole)
    assert whole == pytest.approx([1, 1.5, 2, 2.5, 3, 2.75, 2.5, 2.25])


def test_frames_and_phones_get_the_same_contour():
    contour = PitchContour((0.5, 1.5), "")
    phones, frames = (factors(contour, [[0.2, 0.6]], [n])[0] for n in (4, 400))
    assert frames[::100] == pytest.approx(phones)


def test_one_factor_holds_throughout():
    assert factors(PitchContour((1.25,), ""), [[0, 1]], [3]) == [[1.25] * 3]


def test_a_file_holds_a_factor_a_line(tmp_path):
    path = tmp_path / "contour.txt"
    path.write_text("0.8\n\n1.25\n1\n")
    assert contour_of(str(path)) == PitchContour((0.8, 1.25, 1.0), str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nf * 2\n", r"contour.txt, line 2: 'f \* 2'; expected a finite number"),
        ("1\nnan\n", "contour.txt, line 2: 'nan'; expected a finite"),
        ("1\n\n0\n", "contour.txt, line 3: factor 0; expected a number from 0.1 to 10"),
        ("-1\n", "contour.txt, line 1: factor -1; expected a number from 0.1 to 10"),
        ("", "contour.txt: empty; expected one number a line"),
    ],
)
def test_faults_of_a_file_are_named_by_line(tmp_path, text, message):
    (tmp_path / "contour.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        contour_of(str(tmp_path / "contour.txt"))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("ramp:1", "expected ramp:A:B, such as"),
        ("ramp:1:2:3", "expected ramp:A:B, such as"),
        ("ramp:1:", "ramp:1:: ''; expected a finite number"),
        ("ramp:a:2", "ramp:a:2: 'a'; expected a finite number"),
        ("ramp:1:20", "ramp:1:20: factor 20; expected a number from 0.1 to 10"),
        ("/none/contour.txt", "/none/contour.txt: No such file"),
    ],
)
def test_other_specifications_are_refused(spec, message):
    with pytest.raises(InputError, match=message):
        contour_of(spec)
