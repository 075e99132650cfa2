"""Hold the form of change fragments: ``changes/<slug>.<kind>.md``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

KINDS = ("added", "changed", "fixed", "removed", "security")
NAME = re.compile(rf"[a-z0-9]+(-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")
LINE = 88


def main() -> int:
    """Print each malformed fragment of ``changes/``; 1 when there is one."""
    offenders = list(offences(Path.cwd() / "changes"))
    for offender in offenders:
        print(offender)
    return 1 if offenders else 0


def offences(folder: Path) -> Iterator[str]:
    """Tell what is wrong with the fragments of a folder."""
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if not NAME.fullmatch(path.name):
            yield (
                f"{path.name}: name it <slug>.<kind>.md, the slug in lower case "
                f"with hyphens, the kind one of {', '.join(KINDS)}"
            )
            continue
        yield from _text_offences(path.name, path.read_text(encoding="utf-8"))


def _text_offences(name: str, text: str) -> Iterator[str]:
    if not text.strip():
        yield f"{name}: say in a sentence what changes for a user"
    elif not text.rstrip().endswith("."):
        yield f"{name}: end with a full stop"
    if text.startswith(("#", "-", "*")):
        yield f"{name}: plain sentences, no heading and no list"
    if any(len(line) > LINE for line in text.splitlines()):
        yield f"{name}: break lines at {LINE} characters"


if __name__ == "__main__":
    sys.exit(main())
