"""``agenthost chat``: talk to an agent in a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from .asking import ask_person
from .client import Client
from .errors import CommandError
from .tables import printable

ANSWER_SECONDS = 900
HISTORY = "chat_history"
LINES_KEPT = 1_000
LEAVE = frozenset({"/quit", "/exit"})
RESUMED_SECONDS = 30
LOOK_EVERY = 0.2
Told = Generator[tuple[str, Any], None, None]
MARKS = {
    "length": "the answer was cut off at its length limit",
    "content_filter": "the provider's content rules ended the answer",
}


class Chat:
    """A conversation with one agent.

    Args:
        client: The running daemon.
        agent: A name or an id; the first agent when it is None.

    Raises:
        CommandError: There is no such agent.
    """

    def __init__(self, client: Client, agent: str | None) -> None:
        self._client = client
        self._name, self._id = _agent(client, agent)
        self._asks = sys.stdin.isatty()

    def run(self, home: Path) -> None:
        """Talk until the input ends, or somebody says ``/quit``."""
        if self._asks:
            click.echo(f"{self._name}: /help shows commands, Ctrl-D leaves")
            _remember(home / HISTORY)
        for line in _lines("you> " if self._asks else ""):
            if line in LEAVE:
                return
            try:
                self._say(line)
            except CommandError as error:
                # The next line may fare better; without a person the first ends it.
                if not self._asks:
                    raise
                error.show()

    def _say(self, line: str) -> None:
        if line.startswith("/"):
            path = f"/api/agents/{self._id}/command"
            answer = self._client.post(path, {"command": line}, timeout=60)
            click.echo(printable(answer["response"]))
            return
        told = self._events(f"/api/agents/{self._id}/message/stream", {"message": line})
        attached = False
        try:
            while (waits := self._tell(told)) and self._answered(waits):
                attached = True
                told = self._resumed(waits)
        except KeyboardInterrupt:
            # Who leaves the stream of their own message stops it; a turn that was
            # attached to goes on without its readers.
            told.close()
            if attached:
                self._client.post(f"/api/agents/{self._id}/stop")
            click.echo("\n[stopped]", err=True)

    def _events(self, path: str, body: object = None) -> Told:
        if body is not None:
            self._client.last_event_id = ""
        return self._client.events(path, body, timeout=ANSWER_SECONDS)

    def _tell(self, events: Told) -> dict[str, Any] | None:
        """Print an answer as it comes; tell the question that it waits for, if any."""
        waits, mark, bare = None, "", True
        with closing(events):
            for event, data in events:
                if event == "chunk":
                    click.echo(printable(data["content"]), nl=False)
                    bare = data["content"].endswith("\n")
                elif event == "tool_use":
                    line = click.style(f"[{printable(data['tool'])}]", dim=True)
                    click.echo(line if bare else f"\n{line}")
                    bare = True
                elif event == "waiting":
                    waits = data
                elif event == "error":
                    click.echo(nl=not bare)
                    raise CommandError(data["error"])
                elif event == "done":
                    mark = MARKS.get(data.get("finish"), "")
        click.echo(nl=not bare)
        if mark:
            click.echo(f"[{mark}]", err=True)
        return waits

    def _answered(self, waits: dict[str, Any]) -> bool:
        """Have a question answered here, or tell where; whether the turn goes on."""
        if not self._asks:
            raise CommandError(
                f"{waits['message']}\nnobody can be asked here; answer it with: "
                f"agenthost approvals answer {waits['approval_id']} yes|no"
            )
        return ask_person(self._client, waits["approval_id"])

    def _resumed(self, waits: dict[str, Any]) -> Told:
        """Follow a turn that was answered, from where it was left."""
        path = f"/api/agents/{self._id}/message/stream?turn={waits['turn_id']}"
        deadline = time.monotonic() + RESUMED_SECONDS
        while True:
            events = self._events(path)
            first = next(events, None)
            # It is the daemon that wakes the turn, a moment behind the answer.
            if first is None or first[0] != "waiting":
                break
            if first[1]["approval_id"] != waits["approval_id"]:
                break
            if time.monotonic() > deadline:
                raise CommandError("the turn has not gone on; see: agenthost approvals")
            time.sleep(LOOK_EVERY)
        if first is not None:
            yield first
        yield from events


def _agent(client: Client, wanted: str | None) -> tuple[str, str]:
    agents = client.get("/api/agents")
    for agent in agents:
        if wanted in {None, agent["name"], agent["id"]}:
            return printable(agent["name"]), str(agent["id"])
    known = ", ".join(sorted(agent["name"] for agent in agents))
    if known:
        raise CommandError(f"no agent is named {wanted!r}; there are: {known}")
    raise CommandError("there is no agent yet; make one with: agenthost agent new")


def _lines(prompt: str) -> Iterator[str]:
    while True:
        try:
            line = input(prompt).strip()
        except EOFError:
            if prompt:
                click.echo()
            return
        except KeyboardInterrupt:
            if not prompt:
                raise
            click.echo()
            continue
        if line:
            yield line


def _remember(path: Path) -> None:
    """Have arrows bring back lines, of earlier conversations too."""
    try:
        import readline
    except ImportError:
        return
    import atexit

    path.touch(mode=0o600)
    readline.set_history_length(LINES_KEPT)
    try:
        readline.read_history_file(path)
    except OSError:
        # What cannot be read is begun anew.
        readline.clear_history()
    atexit.register(readline.write_history_file, path)
