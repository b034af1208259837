from tools.benchmarks.boundaries.clips import Reference
from tools.benchmarks.boundaries.comparison import Onset
from tools.benchmarks.boundaries.measuring import Result
from tools.benchmarks.boundaries.table import header, rows


def test_rows_have_the_columns_of_the_header():
    onsets = (Onset(0.104, 0.1, True), Onset(0.226, 0.2, False))
    reference = Reference("MFA", (), "lexicon", step_s=0.01)
    measured = Result(reference, "hmm", onsets, 1.5, 12.4, 512.0, ())
    lines = list(rows(measured))
    assert {line.count("|") for line in [*header().splitlines(), *lines]} == {13}
    assert lines[0] == (
        "| MFA | hmm | 2 | 15.0 ms | 50.0 % | 50.0 % | 50.0 % | 100.0 % | +15.0 ms | 1.5 min"
        " | 12 s | 0.50 GiB |"
    )
    assert "rounded to 10 ms | 2 | 15.0 ms" in lines[1]
    assert "hmm, words | 1 | 4.0 ms" in lines[2]


def test_a_measurement_without_onsets_has_one_row():
    (line,) = rows(Result(Reference("MFA", (), "lexicon"), "hmm", (), 1.0, 2.0, 3.0, ()))
    assert line.count("|") == 13
