import json

import pytest

from models.benchmark.results import Comparison, Measured, Report, plain_of, result_of
from models.benchmark.timing import Call, Measurement, Work, compare
from tests.benchmarks.page import PAGE, REPORTS, names_in, rendered


@pytest.fixture
def reports(tmp_path):
    calls = tuple(Call(2.0, 1.0, Work(2, 100, 125, 25600)) for _ in range(6))
    found = Measurement(calls[:1], calls, 512.0)
    result = result_of(
        Measured("hifigan", "training", "precision=bf16", "2"),
        found,
        sample_rate=25600,
        on_cpu=True,
    )
    ratio = compare(found, found)
    report = Report(
        "python -m bins.benchmark --steps 6",
        {"device": "cpu: Zen", "threads": "1", "torch": "2.13.0"},
        [result],
        [Comparison("hifigan", "training", "precision=fp32", "precision=bf16", ratio)],
    )
    (tmp_path / "speed.json").write_text(json.dumps(plain_of(report)))
    return tmp_path


def test_a_table_has_the_figures_of_its_report_and_the_command(reports):
    page = "Prose.\n\n<!-- benchmark: speed -->\nold\n<!-- end of benchmark: speed -->\n\nMore.\n"
    new = rendered(page, reports)
    rows = [line for line in new.splitlines() if line.startswith("| hifigan")]
    assert rows[0] == ("| hifigan | precision=bf16 | 2 | 100 | 2.00 | 1 | 1 | 0 | 20.0 % | 512 |")
    assert rows[1].endswith(
        "| `precision=fp32` | `precision=bf16` | 1.00 (1.00 to 1.00) | 1.00 (1.00 to 1.00) | 6 |"
    )
    assert "old" not in new
    assert "```sh\npython -m bins.benchmark --steps 6\n```" in new
    assert new.startswith("Prose.\n\n<!-- benchmark: speed -->\n")
    assert new.endswith("<!-- end of benchmark: speed -->\n\nMore.\n")
    assert rendered(new, reports) == new


def test_a_table_without_a_report_says_so(tmp_path):
    page = "<!-- benchmark: speed -->\nold\n<!-- end of benchmark: speed -->\n"
    assert "\nNot measured yet (`speed.json`).\n" in rendered(page, tmp_path)


def test_make_bench_makes_the_reports_with_their_commands():
    makefile = (PAGE.parents[1] / "Makefile").read_text().replace("\\\n\t\t", "")
    makefile = makefile.replace("$(PRECISIONS)", "--compare precision=fp32 precision=bf16")
    for path in REPORTS.glob("*.json"):
        command = json.loads(path.read_text())["command"]
        assert command.removeprefix("python -m bins.benchmark ") in makefile


def test_the_page_shows_its_reports():
    page = PAGE.read_text(encoding="utf-8")
    assert {path.stem for path in REPORTS.glob("*.json")} <= set(names_in(page))
    assert rendered(page, REPORTS) == page, "run python -m tests.benchmarks.page"
