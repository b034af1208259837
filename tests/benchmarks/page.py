"""Writes the tables of docs/benchmarks.md from the reports in docs/benchmarks/.

    python -m tests.benchmarks.page

A table is between the lines `<!-- benchmark: NAME -->` and `<!-- end of benchmark: NAME -->`; NAME
is that of a report, NAME.json, which `make bench` writes. The rest of the page is prose.
"""

import json
import re
from pathlib import Path

from models.benchmark.tables import tables_of

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
REPORTS = PAGE.with_suffix("")
_REGION = re.compile(
    r"<!-- benchmark: (?P<name>\w+) -->\n.*?<!-- end of benchmark: (?P=name) -->\n",
    re.DOTALL,
)


def main() -> None:
    """Rewrites the page."""
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), REPORTS), encoding="utf-8")


def rendered(page: str, reports: Path) -> str:
    """The page with its tables as the reports have them.

    Args:
        page: Markdown.
        reports: Folder of the reports.

    Returns:
        The page; where a table has no report, it says so.
    """
    return _REGION.sub(lambda match: _region(match["name"], reports), page)


def names_in(page: str) -> list[str]:
    """The names of the reports that a page shows."""
    return [match["name"] for match in _REGION.finditer(page)]


def _region(name: str, reports: Path) -> str:
    path = reports / f"{name}.json"
    if not path.exists():
        missing = f"Not measured yet (`{path.name}`)."
        return f"<!-- benchmark: {name} -->\n{missing}\n<!-- end of benchmark: {name} -->\n"
    report = json.loads(path.read_text(encoding="utf-8"))
    facts = report["environment"]
    where = f"{facts['device']}; threads: {facts['threads']}; torch {facts['torch']}"
    return "\n".join(
        [
            f"<!-- benchmark: {name} -->",
            *tables_of(report).values(),
            f"{where}; made by\n",
            f"```sh\n{report['command']}\n```\n",
            f"<!-- end of benchmark: {name} -->\n",
        ]
    )


if __name__ == "__main__":
    main()
