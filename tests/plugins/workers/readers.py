"""What worker processes of these tests do; imported there alone."""

from __future__ import annotations

import json
import os
import sys

words = "no function"


def shouted(document: bytes, *, mark: str = "") -> str:
    print("this goes nowhere")  # noqa: T201 - the test is that it does
    return document.decode().upper() + mark


def surroundings(document: bytes) -> str:
    folder = "/proc/self/fd"
    open_here = [f"{folder}/{fd}" for fd in os.listdir(folder)]
    targets = [os.readlink(fd) for fd in open_here if os.path.lexists(fd)]
    seen = {"environ": dict(os.environ), "open": targets, "cwd": os.getcwd()}
    return json.dumps(
        {**seen, "pid": os.getpid(), "kernel": "agenthost" in sys.modules}
    )


def endless(document: bytes) -> str:
    while True:
        pass


def greedy(document: bytes) -> str:
    return str(len(bytearray(1 << 30)))


def broken(document: bytes) -> str:
    raise ValueError("a document may do that")


def gone(document: bytes) -> str:
    os._exit(3)


def endless_answer(document: bytes) -> str:
    return "x" * (17 * 1024 * 1024)


def writing(document: bytes) -> str:
    with open(document.decode(), "w") as file:
        file.write("something")
    return "written"
