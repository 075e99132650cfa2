"""A command of ``agenthost`` in a terminal of its own, as a person has it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120.0
AGAIN = 20.0
INTERRUPT = "\x03"
UP = "\x1b[A"
END = "\x04"


class Terminal:
    """The program, what it is typed, and what it has shown by now."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.shown = ""
        self._read = 0

    def types(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def line(self, text: str) -> None:
        """Type a line and press Enter."""
        self.types(f"{text}\r")

    def until(self, words: str) -> str:
        """Wait until words are shown behind those waited for before; give all since."""
        said = self._shows(words, PATIENCE)
        assert said is not None, f"{words!r} never came; shown:\n{self.shown}"
        return said

    def interrupts(self, words: str) -> None:
        """Press Ctrl-C until words are shown, as a person does whom nothing answers.

        An interpreter that is about to wait (in ``readline`` behind the prompt, in a
        socket's read) and has looked for signals already hears of one with the next
        event alone.
        """
        deadline = time.monotonic() + PATIENCE
        self.types(INTERRUPT)
        while self._shows(words, AGAIN) is None:
            assert time.monotonic() < deadline, f"no {words!r}; shown:\n{self.shown}"
            self.types(INTERRUPT)

    def _shows(self, words: str, seconds: float) -> str | None:
        deadline = time.monotonic() + seconds
        while (at := self.shown.find(words, self._read)) < 0:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._take(left)
        said, self._read = self.shown[self._read : at], at + len(words)
        return said

    def ends(self) -> int:
        """Wait for the program's end; give its code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it runs on; shown:\n{self.shown}"
            self._take(0.1)
        return self.process.returncode

    def _take(self, seconds: float) -> None:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return
        try:
            self.shown += os.read(self._master, 65_536).decode(errors="replace")
        except OSError:
            # Nobody holds the other end any more.
            self.process.wait(PATIENCE)


@contextmanager
def terminal(home: Path, *arguments: str) -> Iterator[Terminal]:
    """Run a command at a terminal of its own until the block ends."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 100))
    environ = {**os.environ, "AGENTHOST_HOME": str(home), "TERM": "dumb"}
    environ.pop("AGENTHOST_API_KEY", None)
    process = subprocess.Popen(
        [sys.executable, "-c", _CONTROLLED, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environ,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
        os.close(master)


# Ctrl-C reaches a program through the terminal that controls its session; what runs the
# tests in the background has it ignored, which a shell at a terminal has not.
_CONTROLLED = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
import agenthost_cli
sys.argv = ["agenthost", *sys.argv[1:]]
sys.exit(agenthost_cli.main())
"""
