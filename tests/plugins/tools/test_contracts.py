"""Every built-in tool keeps the promises of a tool."""

from __future__ import annotations

from dataclasses import replace

import pytest
from agenthost import ToolContext
from agenthost.testing.tools import ToolContract, offered_tools
from agenthost_tools.web_search.settings import WebSearchSection

from ..egress.wire import Wire, always, answer
from .conftest import AGENT_ID, FakeDaemon
from .office_files import docx


class TestFileRead(ToolContract):
    """Reads a file."""

    tool = "file_read"
    accepted = ({"path": "there"},)
    refused = ({}, {"path": 1}, {"path": None})
    failing = ({"path": "none"}, {"path": "../x"}, {"path": "/etc/passwd"})

    @pytest.fixture(autouse=True)
    def there(self, context: ToolContext) -> None:
        assert context.agent is not None
        context.host.files.workspace(context.agent.id).write("there", b"text")


class TestFileWrite(ToolContract):
    """Writes a file."""

    tool = "file_write"
    accepted = ({"path": "a/b", "content": "text"},)
    refused = ({}, {"path": "a"}, {"path": "a", "content": 1})
    failing = ({"path": "../a", "content": ""}, {"path": "x", "content": "\ud800"})


class TestFileList(ToolContract):
    """Lists a folder."""

    tool = "file_list"
    accepted = ({}, {"path": "."})
    refused = ({"path": 1},)
    failing = ({"path": "none"}, {"path": ".."})


class TestKvGet(ToolContract):
    """Recalls a value."""

    tool = "kv_get"
    accepted = ({"key": "there"},)
    refused = ({}, {"key": 1})
    failing = ({"key": "none"},)

    @pytest.fixture(autouse=True)
    def there(self, context: ToolContext, daemon: FakeDaemon) -> None:
        assert context.agent is not None
        daemon.kv.values[context.agent.id, "there"] = {"a": 1}


class TestKvSet(ToolContract):
    """Remembers a value."""

    tool = "kv_set"
    accepted = ({"key": "k", "value": {"a": [1, None]}}, {"key": "k", "value": None})
    refused = ({}, {"key": "k"}, {"key": 1, "value": 1})


class TestSystemTime(ToolContract):
    """Tells the time."""

    tool = "system_time"
    accepted = ({}, {"timezone": "Europe/Lisbon"})
    refused = ({"timezone": 1},)
    failing = (
        {"timezone": "Nowhere/Here"},
        {"timezone": "../../etc/passwd"},
        {"timezone": ""},
        {"timezone": "a\0b"},
        {"timezone": "Europe"},
        {"timezone": "x" * 5000},
    )


class TestCalculate(ToolContract):
    """Does arithmetic."""

    tool = "calculate"
    accepted = ({"expression": "1 + 1"},)
    refused = ({}, {"expression": ""}, {"expression": "1" * 501}, {"expression": 2})
    failing = (
        {"expression": "x"},
        {"expression": "1/0"},
        {"expression": "round(1, -10**6)"},
    )


class TestAgentList(ToolContract):
    """Lists agents."""

    tool = "agent_list"
    accepted = ({},)
    refused = ({"agent": 1},)


class TestAgentCall(ToolContract):
    """Asks an agent."""

    tool = "agent_call"
    accepted = ({"agent_id": "bob", "message": "hello"},)
    refused = ({}, {"agent_id": "bob"}, {"agent_id": "bob", "message": ""})
    failing = ({"agent_id": "none", "message": "x"},)


class TestAgentSpawn(ToolContract):
    """Makes an agent."""

    tool = "agent_spawn"
    accepted = ({"manifest_toml": 'name = "eve"'},)
    refused = ({}, {"manifest_toml": ""}, {"manifest_toml": "x" * 70_000})
    failing = ({"manifest_toml": "name ="},)


class TestAgentKill(ToolContract):
    """Ends an agent."""

    tool = "agent_kill"
    accepted = ({"agent_id": "bob"},)
    refused = ({}, {"agent_id": 1})
    failing = ({"agent_id": "ada"}, {"agent_id": "none"})


class TestWebFetch(ToolContract):
    """Fetches a page."""

    tool = "web_fetch"
    refused = ({}, {"url": 1}, {"url": "x", "method": "TRACE"}, {"url": "x" * 9000})
    failing = (
        {"url": "http://localhost/"},
        {"url": "http://10.0.0.1/"},
        {"url": "ftp://example.com"},
        {"url": ""},
        {"url": "http://["},
        {"url": "http://127.0.0.1:1/"},
        {"url": "http://127.0.0.1/", "headers": {"X": "a\nb"}},
        {"url": "http://127.0.0.1/", "headers": {"X": "é"}},
        {"url": "http://127.0.0.1/", "headers": {"X Y": "a"}},
    )

    @pytest.fixture(autouse=True)
    async def page(self):  # type: ignore[no-untyped-def]  # noqa: ANN201
        async with Wire(always(answer(b"text", content_type="text/plain"))) as wire:
            type(self).accepted = ({"url": wire.url},)
            yield


class TestAgentFind(ToolContract):
    """Finds agents."""

    tool = "agent_find"
    accepted = ({"query": "bob"}, {"query": "x" * 1_000})
    refused = ({}, {"query": ""}, {"query": "x" * 1_001}, {"query": 1})


class TestAskUser(ToolContract):
    """Asks a person; here they have answered."""

    tool = "ask_user"
    accepted = ({"question": "Which?"},)
    refused = (
        {},
        {"question": " "},
        {"question": "x" * 4_001},
        {"question": "a", "choices": [""]},
        {"question": "a", "choices": ["b"] * 21},
        {"question": "a", "timeout_seconds": 0},
    )
    failing = ({"question": "Which?", "choices": ["a", "b"]},)

    @pytest.fixture
    def context(self, context: ToolContext) -> ToolContext:
        return replace(context, answers={"answer": "this one"})


class TestImageAnalyze(ToolContract):
    """Looks at a picture."""

    tool = "image_analyze"
    accepted = ({"path": "a.png"}, {"path": "a.png", "prompt": "the sky"})
    refused = ({}, {"path": 1}, {"path": "a.png", "prompt": "x" * 4_001})
    failing = ({"path": "none"}, {"path": "../a.png"}, {"path": "words"})

    @pytest.fixture(autouse=True)
    def there(self, context: ToolContext) -> None:
        workspace = context.host.files.workspace(AGENT_ID)
        workspace.write("a.png", b"\x89PNG\r\n\x1a\n" + bytes(16))
        workspace.write("words", b"no picture")


class TestDocumentRead(ToolContract):
    """Reads a document."""

    tool = "document_read"
    accepted = ({"path": "a.docx"}, {"path": "a.docx", "first_page": 2, "pages": 1})
    refused = (
        {},
        {"path": 1},
        {"path": "a.docx", "first_page": 0},
        {"path": "a.docx", "pages": 201},
    )
    failing = ({"path": "none"}, {"path": "../a.docx"}, {"path": "words"})

    @pytest.fixture(autouse=True)
    def there(self, context: ToolContext) -> None:
        workspace = context.host.files.workspace(AGENT_ID)
        workspace.write("a.docx", docx("hello"))
        workspace.write("words", b"no document")


class TestMemorySearch(ToolContract):
    """Searches memory."""

    tool = "memory_search"
    accepted = ({"query": "blue"}, {"query": "NEAR(a) OR *"})
    refused = ({}, {"query": " "}, {"query": "x" * 1_001}, {"query": "\ud800"})


class TestShellExec(ToolContract):
    """Runs a command."""

    tool = "shell_exec"
    accepted = ({"command": "true"},)
    refused = (
        {},
        {"command": ""},
        {"command": "x" * 16_385},
        {"command": "true", "timeout_seconds": 0},
        {"command": ["true"]},
    )
    failing = (
        {"command": "true; true"},
        {"command": "echo $(id)"},
        {"command": "/bin/true"},
        {"command": "./true"},
        {"command": "no-such-program-here"},
        {"command": "echo 'a"},
        {"command": "''"},
        {"command": "true\0"},
    )


class TestWebSearch(ToolContract):
    """Searches the web."""

    tool = "web_search"
    accepted = ({"query": "bees"},)
    refused = (
        {},
        {"query": " "},
        {"query": "x" * 401},
        {"query": "a", "max_results": 21},
        {"query": "a", "max_results": 0},
        {"query": "\ud800"},
    )

    @pytest.fixture(autouse=True)
    async def engine(self, daemon: FakeDaemon):  # type: ignore[no-untyped-def]  # noqa: ANN201
        found = b'{"results": [{"title": "Bees", "url": "https://bees.example"}]}'
        async with Wire(always(answer(found))) as wire:
            daemon.search = WebSearchSection(
                searxng_url=wire.url, allowed_hosts=("127.0.0.1",)
            )
            yield


def test_every_offered_tool_has_a_contract_here() -> None:
    ours = {
        contract.tool
        for contract in ToolContract.__subclasses__()
        if contract.__module__ == __name__
    }
    modules = {spec.call.__module__: spec.name for spec in offered_tools()}
    offered = {
        spec.name
        for spec in offered_tools()
        if spec.call.__module__.startswith("agenthost_tools.")
    }
    assert modules
    assert offered == ours
