"""Writes the tables of docs/benchmarks.md from the reports in docs/benchmarks/.

    python -m tools.benchmarks.page

A table is between the lines `<!-- benchmark: NAME -->` and `<!-- end of benchmark: NAME -->`; NAME
is that of a report, NAME.json, which `make bench` writes. The rest of the page is prose.
"""

import json
import re
from pathlib import Path

from models.programs.benchmark.results import tables_of

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
REPORTS = PAGE.with_suffix("")
_REGION = re.compile(
    r"(?P<begin><!-- benchmark: (?P<name>\w+) -->\n).*?"
    r"(?P<end><!-- end of benchmark: (?P=name) -->\n)",
    re.DOTALL,
)


def main() -> None:
    """Rewrites the page."""
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), REPORTS), encoding="utf-8")


def rendered(page: str, reports: Path) -> str:
    """Replaces the tables of a page, Markdown, by those of the reports in a folder."""

    def region(match: re.Match[str]) -> str:
        report = json.loads((reports / f"{match['name']}.json").read_text(encoding="utf-8"))
        facts = report["environment"]
        where = f"{facts['device']}; threads: {facts['threads']}; torch {facts['torch']}; made by"
        command = f"```sh\n{report['command']}\n```\n"
        tables = tables_of(report["results"])
        return f"{match['begin']}{tables}\n{where}\n\n{command}\n{match['end']}"

    return _REGION.sub(region, page)


def names_in(page: str) -> list[str]:
    """The names of the reports that a page shows."""
    return [match["name"] for match in _REGION.finditer(page)]


if __name__ == "__main__":
    main()
