"""Commands run where they may, within bounds, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from agenthost import (
    Allow,
    Blocked,
    Denied,
    Deny,
    InvalidInput,
    Manifest,
    Principal,
    SecuritySystem,
    ToolContext,
    Unavailable,
    Verdict,
)
from agenthost_tools.shell import policy
from agenthost_tools.shell.settings import EXEC_POLICY, ShellSection
from agenthost_tools.shell.tool import PROCESS, ProcessCase, ShellExec, shell_exec

from ..approvals.stage import wait_until
from .conftest import AGENT_ID, FakeDaemon, limited

PATH = "/usr/local/bin:/usr/bin:/bin"
EVERY = Principal("agent", "ada")


async def run(context: ToolContext, command: str, seconds: int = 30) -> str:
    call = ShellExec(command=command, timeout_seconds=seconds)
    return (await shell_exec(context, call)).text


def with_policy(context: ToolContext, mode: str) -> ToolContext:
    assert context.agent is not None
    manifest = Manifest.model_validate({"name": "ada", "exec_policy": mode})
    return replace(context, agent=replace(context.agent, manifest=manifest))


def full(daemon: FakeDaemon, context: ToolContext, **more: object) -> ToolContext:
    daemon.shell = ShellSection.model_validate({"mode": "full", **more})
    return with_policy(context, "full")


async def test_a_child_runs_nothing_that_its_maker_may_not(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    daemon.shell = ShellSection.model_validate({"mode": "full"})
    daemon.agents.list()[0].manifest = with_policy(context, "deny").agent.manifest  # type: ignore[union-attr]  # reason: it has one
    child = with_policy(context, "full")
    assert child.agent is not None
    child = replace(child, agent=replace(child.agent, parent=AGENT_ID))
    with pytest.raises(Blocked, match="exec_policy"):
        await run(child, "echo hello")


@pytest.mark.setting("shell.mode")
async def test_commands_are_off_until_the_operator_says_otherwise(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    daemon.shell = ShellSection()
    with pytest.raises(Unavailable, match=r"mode under \[shell\]"):
        await run(context, "true")


@pytest.mark.manifest("exec_policy")
def test_the_stricter_of_operator_and_manifest_counts() -> None:
    assert policy.allowed("allowlist", "full") == "allowlist"
    assert policy.allowed("full", "allowlist") == "allowlist"
    assert policy.allowed("full", "full") == "full"
    assert policy.allowed("full", "full", "allowlist") == "allowlist"
    with pytest.raises(Blocked, match="exec_policy"):
        policy.allowed("full", "deny")


@pytest.mark.parametrize("written", ["deny", {"mode": "deny"}])
def test_a_policy_is_a_word_or_a_table(written: object) -> None:
    said = Manifest.model_validate({"name": "ada", "exec_policy": written})
    assert EXEC_POLICY.of(said).exec_policy.mode == "deny"


@pytest.mark.manifest("capabilities.shell")
async def test_an_agent_runs_only_the_programs_of_its_manifest(
    context: ToolContext,
) -> None:
    some = limited(context, shell=("echo",))
    assert "stdout:\nhello\n" in await run(some, "echo hello")
    with pytest.raises(Denied, match="'id'"):
        await run(some, "id")
    with pytest.raises(Denied):
        await run(some, "echo-all hello")


def test_a_manifest_may_name_whole_commands(context: ToolContext) -> None:
    some = limited(context, shell=("ls -l *",)).principal
    assert policy.arguments("ls -l /tmp", "allowlist", some, PATH)[1:] == ("-l", "/tmp")
    for command in ("ls", "ls -R /tmp", "'ls -l /' x", "id"):
        with pytest.raises((Denied, InvalidInput)):
            policy.arguments(command, "allowlist", some, PATH)


@pytest.mark.parametrize(
    "command",
    [
        "echo a; id",
        "echo a && id",
        "echo a | id",
        "echo `id`",
        "echo $HOME",
        "echo a > b",
        "echo a\nid",
        "echo {a,b}",
        "echo *",
        "echo \u2028id",
        "/tmp/evil/echo a",
        "../echo",
        "-c id",
        'echo "a',
    ],
)
def test_what_only_a_shell_understands_is_refused(command: str) -> None:
    with pytest.raises(InvalidInput):
        policy.arguments(command, "allowlist", EVERY, PATH)


def test_a_program_is_not_looked_for_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "planted"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in (".", "", ":."):
        with pytest.raises(InvalidInput, match="no program"):
            policy.arguments("planted", "allowlist", EVERY, path)


def test_a_shell_needs_the_right_to_every_program(context: ToolContext) -> None:
    some = limited(context, shell=("echo",)).principal
    with pytest.raises(Denied):
        policy.arguments("echo a | cat", "full", some, PATH)
    assert policy.arguments("a | b", "full", EVERY, PATH)[0] == "/bin/sh"


@pytest.mark.setting("shell.environment", "shell.path")
def test_a_command_sees_none_of_the_daemons_secrets() -> None:
    settings = ShellSection(environment=("GIT_AUTHOR_NAME",), path="/opt/bin")
    environ = {"OPENAI_API_KEY": "k", "GIT_AUTHOR_NAME": "ada", "PATH": "/evil"}
    assert policy.environment(settings, environ, "/work") == {
        "LANG": "C.UTF-8",
        "GIT_AUTHOR_NAME": "ada",
        "PATH": "/opt/bin",
        "HOME": "/work",
        "TERM": "dumb",
    }


async def test_it_runs_in_the_workspace(context: ToolContext) -> None:
    workspace = context.host.files.workspace(AGENT_ID)
    workspace.write("note", b"here")
    assert "stdout:\nhere" in await run(context, "cat note")


@pytest.mark.setting("shell.max_output_bytes")
async def test_endless_output_is_cut_and_counted(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    daemon.shell = ShellSection(mode="allowlist", max_output_bytes=10)
    assert "stdout:\n1234567890\n[11 more bytes]" in await run(
        context, "echo 12345678901234567890"
    )


@pytest.mark.setting("shell.timeout_secs")
async def test_a_command_over_its_time_is_killed_with_all_it_started(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    context = full(daemon, context, timeout_secs=0.5)
    said = await run(context, "sleep 600 & echo $!; wait", 3_000)
    assert "exit code: killed" in said
    await gone(int(said.split("stdout:\n")[1].split()[0]))


async def test_what_a_command_leaves_in_the_background_ends_with_it(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    said = await run(full(daemon, context), "sleep 600 & echo $!")
    assert "exit code: 0" in said
    await gone(int(said.split("stdout:\n")[1].split()[0]))


async def test_a_stopped_turn_kills_its_command(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    command = "echo $$ > pid.new; mv pid.new pid; sleep 600"
    task = asyncio.ensure_future(run(full(daemon, context), command))
    workspace = context.host.files.workspace(AGENT_ID)

    async def has_begun() -> bool:
        return "pid" in workspace.list()

    await wait_until(has_begun, "it runs")
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
    await gone(int(workspace.read("pid", 100)))


@pytest.mark.setting("shell.max_memory_bytes", "shell.max_file_bytes")
@pytest.mark.setting("shell.max_cpu_secs")
async def test_its_limits_hold_for_the_command(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    limits = {"max_memory_bytes": 2**29, "max_file_bytes": 2**20, "max_cpu_secs": 7}
    command = "ulimit -v; ulimit -f; ulimit -t; ulimit -c"
    said = await run(full(daemon, context, **limits), command)
    # In KiB, blocks of 512 bytes, seconds.
    assert "stdout:\n524288\n2048\n7\n0\n" in said


async def test_a_guard_may_refuse_a_process(
    daemon: FakeDaemon, context: ToolContext
) -> None:
    asked: list[tuple[str, ...]] = []

    def never(case: ProcessCase) -> Verdict:
        asked.append(case.arguments)
        return Deny("not today") if "rm" in case.arguments[0] else Allow()

    system = SecuritySystem("caution", {"process": never}, lambda: None)
    daemon.guards.compile([system], (), (PROCESS,))
    with pytest.raises(Blocked, match="not today"):
        await run(context, "rm -r x")
    assert [each[1:] for each in asked] == [("-r", "x")]


async def gone(pid: int) -> None:
    """Wait until a process has ended, waited for or not."""

    async def has_ended() -> bool:
        return not _runs(pid)

    await wait_until(has_ended, f"{pid} has ended")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
