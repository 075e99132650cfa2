"""Refuse file access that leaves the agent's workspace.

The guard judges the path as written; opening beneath a directory descriptor, in
the FILES backend, judges what stands on the disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from agenthost import (
    ALLOW,
    Blocked,
    Deny,
    Files,
    FilesBackend,
    Guard,
    Guards,
    PathCase,
    SecuritySystem,
    Verdict,
    hookimpl,
)

SHOWN = 200
"""So many characters of a path are told."""


def inside_workspace(case: PathCase) -> Verdict:
    """Deny a path that names a place outside the workspace."""
    if case.path.is_absolute() or ".." in case.path.parts:
        shown = str(case.path)[:SHOWN].encode("utf-8", "replace").decode()
        return Deny(f"{shown} leaves the workspace; use a path inside it")
    return ALLOW


def self_test(open_files: Callable[[Path, Guards], Files]) -> None:
    """Plant a link that leaves a scratch workspace and see every way out refused.

    Args:
        open_files: Opens the backend that keeps the agents' files.

    Raises:
        RuntimeError: A way out was open, or an honest file was refused.
    """
    with tempfile.TemporaryDirectory(prefix="agenthost-") as scratch:
        root = Path(scratch)
        (root / "secret").write_bytes(b"secret")
        guards = Guards([security_system()])
        workspace = open_files(root / "spaces", guards).workspace("a")
        workspace.write("honest", b"yes")
        if workspace.read("honest", 3) != b"yes":
            raise RuntimeError("an honest file was not read")
        (root / "spaces" / "a" / "out").symlink_to(root)
        for way in ("out/secret", "../../secret", f"{root}/secret"):
            with suppress(Blocked):
                workspace.read(way, 6)
                raise RuntimeError(f"{way} was let through")


@hookimpl
def security_system() -> SecuritySystem:
    """Offer path traversal prevention."""
    return SecuritySystem(
        "path_traversal_prevention",
        {Guard.PATH: inside_workspace},
        self_test,
        proves_on=FilesBackend,
    )
