"""``make bench``: print the table and keep the figures in results.jsonl."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from .figures import Row
from .rows import all_rows

RESULTS = Path(__file__).parent / "results.jsonl"
COLUMNS = "{:<40} {:>12} {:>12} {:>9} {:>10}  {}"


def main() -> int:
    """Measure everything; 1 when a target is missed."""
    run = begin()
    rows = []
    for row in all_rows():
        tell(run, row)
        rows.append(row)
    return 0 if all(row.met for row in rows) else 1


def begin() -> str:
    """Print the head of the table; return the moment that names the run."""
    print(COLUMNS.format("what", "ours", "yardstick", "ratio", "target", "met"))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def tell(run: str, row: Row) -> None:
    """Print a row and keep its figures."""
    print(line(row), flush=True)
    keep(run, row)


def line(row: Row) -> str:
    """Write one line of the table."""
    sign = ">=" if row.at_least else "<="
    bare = row.yardstick is None
    return COLUMNS.format(
        row.name,
        f"{row.ours:.4g} {row.unit}",
        "-" if row.yardstick is None else f"{row.yardstick:.4g} {row.unit}",
        "-" if bare else f"{row.value:.2f} x",
        f"{sign} {row.limit:g}{'' if bare else ' x'}",
        "yes" if row.met else "NO",
    )


def keep(run: str, row: Row) -> None:
    """Append the figures of one row."""
    facts = {"run": run, **asdict(row), "value": row.value, "met": row.met}
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


if __name__ == "__main__":
    sys.exit(main())
