"""Say how much wanted to leave a network that leads nowhere.

The system counts what it finds no way for, connections and look-ups of names alike, and
however quietly whoever sent it took the refusal. ``make offline`` asks for it.
"""

from __future__ import annotations

import sys
from pathlib import Path

COUNTERS = Path("/proc/net")


def refused(folder: Path = COUNTERS) -> int:
    """Count what had no way out, of both versions of IP."""
    names, values = (
        line.split()
        for line in (folder / "snmp").read_text(encoding="ascii").splitlines()
        if line.startswith("Ip:")
    )
    count = int(values[names.index("OutNoRoutes")])
    six = folder / "snmp6"
    if six.exists():
        rows = dict(
            line.split() for line in six.read_text(encoding="ascii").splitlines()
        )
        count += int(rows["Ip6OutNoRoutes"])
    return count


def main() -> int:
    """Print the count; 1 when there is any."""
    count = refused()
    print(f"{count} attempts to reach somebody outside")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
