"""What a turn costs a daemon that knows very many tools of MCP servers."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import servers

SERVERS = 2
TOOLS = 500
"""Of a server: the most that one may have."""
SHOWN = 10
"""So many an agent may call."""
LIMIT = 1.2
START_SECONDS = 60
SCRIPT = Path(__file__).with_name("mcp_tools.py")
ALONE = servers.MANIFEST
WITH_TOOLS = """\
name = "{name}"
description = "Answers for a benchmark."
mcp_servers = ["many0"]

[capabilities]
tools = ["mcp_many0_tool_00?"]
"""


def configured(count: int, tools: int) -> str:
    """So many servers of so many tools, as the configuration has them."""
    args = json.dumps(["-S", str(SCRIPT), str(tools)])
    python = f'type = "stdio", command = "{sys.executable}", args = {args}'
    tables = (
        f'\n[[mcp_servers]]\nname = "many{n}"\ntransport = {{ {python} }}\n'
        for n in range(count)
    )
    return "".join(tables)


@contextmanager
def knowing(upstream_port: int, count: int, tools: int) -> Iterator[servers.Server]:
    """Run a daemon that has met all of its tools."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        servers.write_home(home, upstream_port, configured(count, tools))
        with servers.daemon(home) as (daemon, _):
            until = time.monotonic() + START_SECONDS
            while known(daemon) < count * tools:
                if time.monotonic() > until:
                    raise servers.StartError("its MCP servers did not come")
                time.sleep(0.1)
            yield daemon


def known(daemon: servers.Server) -> int:
    """How many tools of MCP servers there are for agents."""
    tools = daemon.ask("/api/tools")["tools"]
    return sum(each.startswith("mcp_many") for each in tools)
