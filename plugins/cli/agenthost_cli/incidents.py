"""What the daemon's ends tell its next start: which plugin to leave out.

``incidents.jsonl`` in the home holds a line for each start and what became of it. A
line that was never followed up is itself the news: the process died there.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "incidents.jsonl"
WINDOW = 600.0
TIMES = 3
MOST_BYTES = 64 * 1024

Row = dict[str, Any]


@dataclass
class Record:
    """What the lines come to: starts that failed, and forced ends by plugin."""

    failed: list[Row] = field(default_factory=list)
    forced: list[Row] = field(default_factory=list)
    starting: dict[int, Row] = field(default_factory=dict)
    standing: dict[int, Row] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Follow one line."""
        pid = row["pid"]
        match row["what"]:
            case "starting":
                self._died(pid)
                self.starting[pid] = row
            case "serving" | "refused":
                self.starting.pop(pid, None)
            case "stalled":
                self.standing[pid] = row
            case "recovered":
                self.standing.pop(pid, None)
            case "forced":
                self.forced.append(row)
            case "ended":
                # Whoever stops it in order has seen to what was wrong.
                for known in (self.failed, self.forced, self.starting, self.standing):
                    known.clear()

    def _died(self, pid: int) -> None:
        """A new process has this id: the old one is gone."""
        if pid in self.starting:
            self.failed.append(self.starting.pop(pid))
        if pid in self.standing:
            self.forced.append(self.standing.pop(pid))


class Incidents:
    """The file of one home; writing never fails the caller.

    Args:
        home: Its folder.
        now: The wall time.
    """

    def __init__(self, home: Path, now: Callable[[], float] = time.time) -> None:
        self._file = home / FILE
        self._now = now

    def note(self, what: str, *, sync: bool = False, **facts: object) -> None:
        """Add a line; ``sync`` waits until it is on disk."""
        row = {"at": self._now(), "pid": os.getpid(), "what": what, **facts}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        # A home that cannot be written is told by who needs it written.
        with suppress(OSError):
            descriptor = os.open(self._file, flags, 0o600)
            try:
                os.write(descriptor, f"{json.dumps(row)}\n".encode())
                # A stall is told before the process ends for it: it must outlive the
                # machine's end, too, or the next start does not know whom to leave out.
                if sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def forced_ends(self) -> Counter[str]:
        """Count the forced ends of the last ten minutes by plugin."""
        record = self._record()
        ends = [*record.forced, *record.standing.values()]
        return Counter(str(row.get("plugin")) for row in self._recent(ends))

    def failed_starts(self) -> int:
        """Count the starts of the last ten minutes that never came to serve."""
        record = self._record()
        return len(list(self._recent([*record.failed, *record.starting.values()])))

    def stands_still(self) -> bool:
        """Whether the last word of some process is that it stood still."""
        return bool(self._record().standing)

    def last(self, what: str) -> Row:
        """Give the newest line of a kind; empty when there is none."""
        return next((r for r in reversed(list(self._rows())) if r["what"] == what), {})

    def shorten(self) -> None:
        """Forget what is too old to count, once the file has grown."""
        with suppress(OSError):
            if self._file.stat().st_size > MOST_BYTES:
                kept = "".join(f"{json.dumps(r)}\n" for r in self._recent(self._rows()))
                fresh = self._file.with_suffix(".new")
                fresh.touch(0o600)
                fresh.write_text(kept, encoding="utf-8")
                fresh.replace(self._file)

    def _record(self) -> Record:
        record = Record()
        for row in self._rows():
            record.add(row)
        return record

    def _recent(self, rows: Any) -> Iterator[Row]:
        since = self._now() - WINDOW
        return (row for row in rows if row["at"] >= since)

    def _rows(self) -> Iterator[Row]:
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        for line in lines.splitlines():
            # The last line may be cut off by the end that it would have told of.
            with suppress(ValueError, TypeError, KeyError):
                row = json.loads(line)
                if isinstance(row, dict) and {"what"} <= row.keys():
                    yield {**row, "at": float(row["at"]), "pid": int(row["pid"])}
