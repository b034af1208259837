import json

from tools.benchmarks.page import PAGE, REPORTS, names_in, rendered


def test_a_table_has_the_figures_of_its_report_and_the_command(tmp_path):
    result = {"mode": "training", "model": "hifigan", "setting": "precision=bf16"}
    report = {
        "command": "python -m bins.benchmark --steps 6",
        "environment": {"device": "cpu: Zen", "threads": "1", "torch": "2.13.0"},
        "results": [result | {"figures": {"batch": 2.0}}],
    }
    (tmp_path / "speed.json").write_text(json.dumps(report))
    page = "Prose.\n\n<!-- benchmark: speed -->\nold\n<!-- end of benchmark: speed -->\n\nMore.\n"
    assert rendered(page, tmp_path) == (
        "Prose.\n\n<!-- benchmark: speed -->\n"
        "| training | setting | batch |\n| --- | --- | ---: |\n| hifigan | `precision=bf16` | 2 |\n"
        "\ncpu: Zen; threads: 1; torch 2.13.0; made by\n"
        "\n```sh\npython -m bins.benchmark --steps 6\n```\n"
        "\n<!-- end of benchmark: speed -->\n\nMore.\n"
    )


def test_make_bench_makes_the_reports_with_their_commands():
    makefile = (PAGE.parents[1] / "Makefile").read_text().replace("\\\n\t\t", "")
    makefile = makefile.replace("$(PRECISIONS)", "--compare precision=fp32 precision=bf16")
    for path in REPORTS.glob("*.json"):
        command = json.loads(path.read_text())["command"]
        assert command.removeprefix("python -m bins.benchmark ") in makefile


def test_the_page_shows_its_reports():
    page = PAGE.read_text(encoding="utf-8")
    assert {path.stem for path in REPORTS.glob("*.json")} == set(names_in(page))
    assert rendered(page, REPORTS) == page, "run python -m tools.benchmarks.page"
