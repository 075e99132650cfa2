"""What capability files cost: resolving a thousand of them, and one decision.

Run ``python -m benchmarks.desktop_shell``; it prints one figure a line.
"""

from __future__ import annotations

import gc
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path

from agenthost_desktop_shell.folders import Folders
from agenthost_desktop_shell.policy import (
    Policy,
    capability_files,
    read_documents,
    read_reports,
)
from agenthost_desktop_shell.tables import Tables
from agenthost_desktop_shell.terms import Caller, ShellCall

from tests.plugins.desktop_shell.test_hostile import HOSTILE, judge
from tests.plugins.desktop_shell.test_project import APPS

FILES = 1000
PERMISSIONS = 50
ROUNDS = 20_000
LINUX = Folders("linux", environment={"HOME": "/home/me"})
PROGRAM = {"name": "git", "cmd": "git", "args": ["log", {"validator": r"-n\d+"}]}
SCOPE = {"identifier": "shell:allow-execute", "allow": [PROGRAM]}


def write_files(folder: Path, tables: Tables) -> None:
    names = itertools.cycle(sorted(i for i in tables.identifiers if ":deny-" not in i))
    for number in range(FILES):
        plain = set(itertools.islice(names, PERMISSIONS - 1)) - {"core:default"}
        capability = {
            "identifier": f"c{number:04}",
            "windows": [f"window-{number}", f"admin-{number}-*"],
            "webviews": ["main"] if number == FILES // 2 else [],
            "remote": {"urls": [f"https://*.host{number}.dev"]},
            "permissions": [*sorted(plain), SCOPE],
        }
        (folder / f"{number:04}.json").write_text(json.dumps(capability))


def spent(work: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def each(work: Callable[[], object]) -> float:
    return (
        min(spent(lambda: [work() for _ in range(ROUNDS)]) for _ in range(3)) / ROUNDS
    )


def decisions(policy: Policy) -> Iterator[tuple[str, float]]:
    title, main = "core:window:title", f"window-{FILES - 1}"
    far = f"https://x.host{FILES - 1}.dev/page"
    yield "allowed, local", each(lambda: policy.decide(title, main, platform="linux"))
    yield (
        "allowed, remote",
        each(lambda: policy.decide(title, main, None, far, "linux")),
    )
    yield "refused, label", each(lambda: policy.decide(title, "no", platform="linux"))
    yield "refused, unknown", each(lambda: policy.decide("a:b", main, platform="linux"))
    call, caller = ShellCall("git", ["log", "-n5"]), Caller(main)
    yield "shell:execute", each(lambda: policy.decide_shell(call, caller, LINUX))


def first_sight(policy: Policy) -> Iterator[tuple[str, float]]:
    fresh = itertools.count()

    def labels() -> None:
        for number in itertools.islice(fresh, 50):
            policy.decide("core:window:title", f"new-{number}", platform="linux")

    def origins() -> None:
        for number in itertools.islice(fresh, 50):
            url = f"https://x.new{number}.dev"
            policy.decide("core:window:title", "no", None, url, "linux")

    yield "a label", spent(labels) / 50
    yield "an origin", spent(origins) / 50


def start() -> float:
    """Seconds from nothing to the verdict on an application."""
    code = "from agenthost_desktop_shell.commands import capability; capability()"
    command = [sys.executable, "-I", "-c", code, "check", str(APPS / "files")]
    return min(spent(lambda: subprocess.run(command, check=True)) for _ in range(5))


def hostile() -> Iterator[tuple[str, float]]:
    """Seconds that each hostile file of the tests takes to be refused."""
    for what, content, name, _ in HOSTILE:
        made = content() if callable(content) else content
        yield what, spent(partial(judge, made, name))


def main() -> None:
    tables = Tables.builtin()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, tables)
        started = time.perf_counter()
        report = read_reports(read_documents(capability_files(folder)), tables)
        read = time.perf_counter() - started
    policy = Policy(report.checked(), tables)
    resolved = spent(lambda: policy.on("linux"))
    records = sum(len(a.allowed) for a in policy.on("linux").commands.values())
    print(f"{FILES} files of {PERMISSIONS} permissions, {records} records")
    print(f"read and validate: {read:.2f} s")
    print(f"resolve: {resolved:.2f} s")
    for what, seconds in decisions(policy):
        print(f"decide, {what}: {seconds * 1e6:.1f} us")
    for what, seconds in first_sight(policy):
        print(f"first sight of {what} among {FILES} patterns: {seconds * 1e6:.0f} us")
    print(f"start and check of an application: {start():.2f} s (at most 0.3)")
    what, seconds = max(hostile(), key=itemgetter(1))
    print(f"slowest hostile input, {what}: {seconds:.2f} s (at most 1)")


if __name__ == "__main__":
    main()
