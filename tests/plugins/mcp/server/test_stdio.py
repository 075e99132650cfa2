"""The bridge between a pipe and the daemon: lines in, lines out, nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from threading import Barrier
from typing import Any

import click
from agenthost_mcp.server.stdio import PATH, Bridge


class Daemon:
    """A daemon that answers each message with its method, and keeps what it got."""

    def __init__(self, fault: str = "") -> None:
        self.paths: list[str] = []
        self.fault = fault
        self.both = Barrier(2)

    def connect(self) -> Daemon:
        if self.fault:
            raise click.ClickException(self.fault)
        return self

    def events(
        self, path: str, body: Any = None, *, timeout: float
    ) -> Iterator[tuple[str, Any]]:
        assert timeout > 60
        self.paths.append(path)
        if body["method"] == "initialize":
            yield "session", "s1"
        if body["method"] == "together":
            self.both.wait(10)
        if "id" in body:
            yield "message", {"id": body["id"], "result": body["method"]}


def spoken(daemon: Daemon, *lines: str) -> list[Any]:
    out = io.StringIO()
    Bridge(daemon, out).run(f"{line}\n" for line in lines)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_session_is_kept_and_answers_are_lines() -> None:
    daemon = Daemon()
    told = spoken(
        daemon,
        '{"id": 1, "method": "initialize"}',
        '{"method": "notifications/initialized"}',
        "",
        '{"id": "a\\nb", "method": "tools/list"}',
    )
    assert {(each["id"], each["result"]) for each in told} == {
        (1, "initialize"),
        ("a\nb", "tools/list"),
    }
    assert daemon.paths[0] == PATH
    assert daemon.paths[1:] == [f"{PATH}?session=s1"] * 2


def test_calls_are_under_way_together() -> None:
    lines = [f'{{"id": {n}, "method": "together"}}' for n in (1, 2)]
    assert len(spoken(Daemon(), *lines)) == 2


def test_what_is_wrong_is_an_answer_where_there_is_somebody_to_answer() -> None:
    daemon = Daemon("nobody runs there")
    told = spoken(
        daemon, "{", '{"id": 7, "method": "ping"}', '{"method": "notifications/x"}'
    )
    assert [(each["id"], each["error"]["code"]) for each in told] == [
        (None, -32700),
        (7, -32603),
    ]
    assert told[1]["error"]["message"] == "nobody runs there"
    assert spoken(daemon, "[" * 100_000)[0]["error"]["code"] == -32700
    (long,) = spoken(daemon, '"' + "x" * (5 * 1024 * 1024) + '"')
    assert long["error"]["code"] == -32600
