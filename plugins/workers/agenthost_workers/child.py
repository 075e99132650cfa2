"""What a worker process does: reads documents of strangers, one after another.

It is run as a script and knows the standard library alone. It gets its settings as
JSON in its one argument and then, on standard input, frames of a head (JSON) and a
document; it answers each on standard output. ``{"load": "module:function"}`` imports,
``{"options": {...}}`` calls what was loaded last with the document; ``alarm`` says how
many seconds either may take.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

HEAD = struct.Struct(">II")
"""Before a frame to a worker: the lengths of its head and its document."""

ANSWER = struct.Struct(">?I")
"""Before an answer: whether it is a result, and the length of its UTF-8 text."""

BEHIND_THE_DAEMON = 5
"""How much later this comes to the processor: a page must not delay answers."""

DEEPEST_RECURSION = 5_000
"""Converters recurse with the depth of a document; Python's own limit is 1,000."""


def main(settings: dict[str, Any]) -> None:
    """Serve until standard input ends."""
    jobs, answers = sys.stdin.buffer, _only_way_out()
    _confine(settings["memory"])
    os.nice(BEHIND_THE_DAEMON)
    sys.path[:] = settings["path"]
    sys.setrecursionlimit(DEEPEST_RECURSION)
    function: Callable[..., str] = _nothing
    while frame := _next_frame(jobs):
        head, document = frame
        # The kernel ends this process by itself should its daemon be gone by then.
        signal.setitimer(signal.ITIMER_REAL, head["alarm"])
        try:
            if name := head.get("load"):
                function, text = _loaded(name), ""
            else:
                text = function(document, **head["options"])
        except Exception as error:  # noqa: BLE001 - a document may make it raise anything
            _answer(answers, f"{type(error).__name__}: {error}"[:500], good=False)
        else:
            _answer(answers, text, good=True)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _only_way_out() -> BinaryIO:
    """Keep standard output for answers: what is printed goes nowhere."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return answers


def _confine(memory: int) -> None:
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        _, hard = resource.getrlimit(kind)
        limit = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        # The hard limit, too: what runs here could raise a soft one again.
        resource.setrlimit(kind, (limit, limit))
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        # Who takes documents apart writes no file and leaves no core behind.
        resource.setrlimit(kind, (0, 0))


def _nothing(document: bytes, **options: object) -> str:  # noqa: ARG001
    raise RuntimeError("a document came before what reads it")


def _loaded(name: str) -> Callable[..., str]:
    module, _, function = name.partition(":")
    loaded: Callable[..., str] = getattr(importlib.import_module(module), function)
    return loaded


def _next_frame(jobs: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    lengths = jobs.read(HEAD.size)
    if len(lengths) < HEAD.size:
        return None
    head, document = HEAD.unpack(lengths)
    return json.loads(jobs.read(head)), jobs.read(document)


def _answer(answers: BinaryIO, text: str, *, good: bool) -> None:
    said = text.encode("utf-8", "replace")
    answers.write(ANSWER.pack(good, len(said)) + said)
    answers.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
