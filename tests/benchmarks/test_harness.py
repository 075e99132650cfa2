"""The harness itself: the upstream, the yardstick, the load and the measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks import crowds, load, measure, run, servers
from benchmarks.figures import Row

BURN = (
    "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: 1"
)
BODY = {"model": "bench-model", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(scope="module")
def upstream() -> Iterator[servers.Server]:
    with servers.module("upstream", "5") as server:
        yield server


def test_the_upstream_answers_whole_and_streamed_alike(
    upstream: servers.Server,
) -> None:
    url = f"http://127.0.0.1:{upstream.port}/v1/chat/completions"
    whole = httpx.post(url, json=BODY).json()["choices"][0]["message"]["content"]
    streamed = httpx.post(url, json={**BODY, "stream": True})
    events = [line[6:] for line in streamed.text.split("\n\n") if line]
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events[:-1]]
    assert whole == "word " * 5
    assert "".join(delta.get("content", "") for delta in deltas) == whole
    assert json.loads(events[-2])["choices"][0]["finish_reason"] == "stop"
    assert json.loads(events[-2])["usage"]["completion_tokens"] == 50
    assert events[-1] == "[DONE]"


def test_the_upstream_keeps_a_connection_and_refuses_other_paths(
    upstream: servers.Server,
) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{upstream.port}") as client:
        statuses = [client.get("/v1/models").status_code]
        statuses += [client.post("/v1/chat/completions", json=BODY).status_code]
    assert statuses == [404, 200]


@pytest.mark.conformance
def test_the_load_generator_counts_every_answer_also_past_a_reconnect() -> None:
    with servers.module("baseline_hello") as hello:
        assert hello.ask("/") == {"hello": "world"}
        before = measure.tree_cpu(hello.pid)
        outcome = load.run(load.Plan(hello.port, ("/",), 1100))
        assert outcome.requests == 1100
        assert 0 < outcome.p50 <= outcome.p99 < outcome.seconds
        assert measure.tree_cpu(hello.pid) > before + 0.01
        assert measure.pss_kb(hello.pid) > 1_000


def test_an_answer_that_is_not_200_stops_the_load(upstream: servers.Server) -> None:
    with pytest.raises(load.LoadError, match="404"):
        load.run(load.Plan(upstream.port, ("/nowhere",), 3, 2))


def test_the_cpu_of_children_and_of_ended_threads_counts() -> None:
    thread = f"import threading\nt = threading.Thread(target=exec, args=({BURN!r},))"
    child = f"{thread}\nt.start(); t.join()\nprint(flush=True); input()"
    parent = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert len(measure.tree(process.pid)) == 2
        assert measure.tree_cpu(process.pid) > 0.2
        process.communicate(b"\n")


def test_the_cpu_of_a_process_agrees_with_its_own_clock() -> None:
    own = time.process_time()
    assert own <= measure.cpu_seconds(os.getpid()) < own + 0.1


@pytest.mark.parametrize(
    ("row", "met", "ratio"),
    [
        (Row("a", 10, "us", 2, 5), True, "2.00 x"),
        (Row("a", 11, "us", 2, 5), False, "2.20 x"),
        (Row("a", 150, "/s", 15, 10, at_least=True), True, "15.00 x"),
        (Row("a", 149, "/s", 15, 10, at_least=True), False, "14.90 x"),
        (Row("a", 130, "MB", 130), True, "-"),
    ],
)
def test_a_row_tells_its_ratio_and_whether_the_target_is_met(
    row: Row, met: bool, ratio: str
) -> None:
    assert row.met is met
    assert ratio in run.line(row)
    assert run.line(row).endswith("yes" if met else "NO")


@pytest.mark.conformance
def test_a_small_crowd_is_measured_in_every_row(
    upstream: servers.Server, tmp_path: Path
) -> None:
    small = crowds.Crowd(3, idle=2, passing=4, at_once=2, seconds=0.1, rest=0.0)
    servers.write_home(tmp_path, upstream.port)
    with servers.daemon(tmp_path) as (daemon, _):
        try:
            measured = list(crowds.crowd_rows(daemon, small))
        except PermissionError:
            pytest.skip("reading the memory of a daemon needs root")
    assert [row.unit for row in measured] == ["%", "ms", "MB"]
    assert all(row.ours >= 0 for row in measured[:2])
