"""An MCP server of as many tools as its argument says; none of them is called."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["path"],
}


def answer(method: str, params: dict[str, Any], count: int) -> dict[str, Any]:
    """What it answers to a client of revision 2025-11-25."""
    if method == "initialize":
        able: dict[str, Any] = {"tools": {}}
        named = {"name": "bench", "version": "1"}
        version = params["protocolVersion"]
        return {"protocolVersion": version, "serverInfo": named, "capabilities": able}
    tools = [
        {"name": f"tool_{n:03}", "description": f"Reads {n}.", "inputSchema": SCHEMA}
        for n in range(count)
    ]
    return {"tools": tools}


def main() -> None:
    """Answer each line until there are no more."""
    for line in sys.stdin:
        said = json.loads(line)
        method, told = said.get("method"), {"jsonrpc": "2.0", "id": said.get("id")}
        if method in ("initialize", "tools/list"):
            told["result"] = answer(method, said.get("params", {}), int(sys.argv[1]))
        else:
            told["error"] = {"code": -32601, "message": "no such method"}
        if "id" in said:
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
