"""Logs tell whose lines they are, and never show a credential."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from agenthost import LOG_FIELDS, Call, ProviderFault, RouteGroup, hookimpl
from agenthost.testing import DaemonProcess, Daemons
from agenthost_cli.logs import JsonFormatter, LineFormatter, redacted

CANARY = "s3cr3t-canary-value"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {CANARY}",
        f"api_key={CANARY}",
        f'{{"api_key": "{CANARY}"}}',
        f"https://x.example/?token={CANARY}&a=1",
        f"password: {CANARY}",
        "sk-s3cr3tcanaryvalue1234",
    ],
)
def test_a_credential_is_blotted_out(text: str) -> None:
    assert "s3cr3t" not in redacted(text)
    assert "***" in redacted(text)


@pytest.mark.parametrize("text", ["tokens=1234 were used", "the task is skilled"])
def test_plain_words_stay(text: str) -> None:
    assert redacted(text) == text


def test_a_traceback_is_redacted_too() -> None:
    try:
        int(f"api_key={CANARY}")
    except ValueError:
        record = logging.LogRecord(
            "agenthost", logging.ERROR, "", 0, "failed %s", ("x",), sys.exc_info()
        )
    line = LineFormatter().format(record)
    assert "error agenthost: failed x" in line
    assert CANARY not in line


@pytest.fixture
def ids() -> Iterator[dict[str, str]]:
    fields = {"request_id": "r1", "turn_id": "t1", "agent_id": "a1"}
    token = LOG_FIELDS.set({**fields, "traceparent": CANARY})
    yield fields
    LOG_FIELDS.reset(token)


def record(text: str, *of: object) -> logging.LogRecord:
    return logging.LogRecord("agenthost.x", logging.WARNING, "", 0, text, of, None)


def test_a_line_ends_with_the_ids_of_what_it_is_about(ids: dict[str, str]) -> None:
    line = LineFormatter().format(record("failed %s", "x"))
    assert line.endswith(
        "Z warning agenthost.x: failed x [request=r1 turn=t1 agent=a1]"
    )


def test_json_has_the_ids_and_what_the_line_says(ids: dict[str, str]) -> None:
    line = JsonFormatter().format(record("failed\n%s", "x\u2028\ud800"))
    assert line.isprintable()
    told = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told == {
        "level": "warning",
        "logger": "agenthost.x",
        "message": "failed\nx\u2028\ud800",
        **ids,
    }


def test_json_shows_no_credential_either() -> None:
    try:
        int(f"api_key={CANARY}")
    except ValueError:
        record = logging.LogRecord(
            "agenthost", logging.ERROR, "", 0, f"token={CANARY}", (), sys.exc_info()
        )
    line = JsonFormatter().format(record)
    assert "ValueError" in json.loads(line)["traceback"]
    assert CANARY not in line
    assert "turn_id" not in line


@pytest.mark.setting("log_format")
def test_the_log_is_json_when_the_configuration_says_so(tmp_path: Path) -> None:
    environ = {"AGENTHOST_LOG_FORMAT": "json"}
    with DaemonProcess(tmp_path / "home", environ) as daemon:
        assert daemon.terminate() == 0
    lines = [line for line in daemon.log.splitlines() if line.startswith("{")]
    told = [json.loads(line) for line in lines]
    assert "shutting down; waiting for 0 running turns" in {
        each["message"] for each in told
    }
    assert not re.search(r"Z (info|warning|error) ", daemon.log)


async def test_what_a_turn_logs_carries_its_ids_and_those_of_its_request(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    formatter = LineFormatter()

    def noted(record: logging.LogRecord) -> bool:
        # Formatted where it is logged, as a stream's handler does.
        lines.append(formatter.format(record))
        return True

    caplog.handler.addFilter(noted)
    daemon = await daemons.start()
    agents = [await daemon.agent(f"agent-{n}", tools=[]) for n in range(4)]
    for _ in agents:
        daemon.model.fails(ProviderFault.BAD_REQUEST)
    answers = await asyncio.gather(*(agent.send("hello") for agent in agents))
    caplog.handler.removeFilter(noted)
    failed = [line for line in lines if "model call failed" in line]
    asked = zip(answers, agents, strict=True)
    wanted = {(a.headers["x-request-id"], agent.id) for a, agent in asked}
    found = re.findall(r"\[request=(\S+) turn=(\S+) agent=(\S+)\]", "\n".join(failed))
    assert {(request, agent) for request, _, agent in found} == wanted
    assert len({turn for _, turn, _ in found}) == 4


def test_lines_of_the_access_log_go_to_standard_output_whole() -> None:
    script = (
        "import logging; from agenthost_cli.logs import set_up_logs; "
        "set_up_logs('error'); log = logging.getLogger('agenthost.access'); "
        f"log.info('%s', 'GET /a token={CANARY}')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("GET /a token=***\n", "")


async def test_what_a_handler_logs_carries_the_id_of_its_request(
    daemons: Daemons, caplog: pytest.LogCaptureFixture
) -> None:
    lines: list[str] = []
    formatter, routes = LineFormatter(), RouteGroup("noisy")

    @routes.get("/api/noisy", scope="agents:read", cost=1)
    async def noisy(call: Call) -> dict[str, str]:
        logging.getLogger("agenthost.noisy").warning("heard")
        await asyncio.to_thread(logging.getLogger("agenthost.noisy").warning, "heard")
        return {}

    def noted(record: logging.LogRecord) -> bool:
        lines.append(formatter.format(record))
        return True

    plugin = SimpleNamespace(
        __name__="noisy", register_routes=hookimpl(lambda: [routes])
    )
    daemon = await daemons.start(plugins=[plugin])
    caplog.handler.addFilter(noted)
    answers = [await daemon.http.get("/api/noisy") for _ in range(2)]
    caplog.handler.removeFilter(noted)
    asked = [answer.headers["x-request-id"] for answer in answers for _ in range(2)]
    ends = [line.partition("heard ")[2] for line in lines if "heard" in line]
    assert ends == [f"[request={each}]" for each in asked]
