"""An MCP server over standard input and output: run as a script, on its own.

Its argument is a JSON file, read anew for each list: ``tools``, and what else a test
wants of it. Tools do what their names say; each message it gets is a line of
``<file>.log``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def everything() -> dict[str, Any]:
    resource = {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "inside"}
    blob = {"uri": "file:///b.bin", "mimeType": "application/x-b", "blob": "AAEC"}
    return {
        "content": [
            {"type": "text", "text": "words"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": resource},
            {"type": "resource", "resource": blob},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
            {"type": "hologram"},
        ],
        "structuredContent": {"n": 1},
    }


def end(*_: Any) -> None:
    sys.stderr.write("a last word\n")
    sys.stderr.flush()
    os._exit(3)


def flood(*_: Any) -> None:
    while True:
        say({"method": "notifications/message", "params": {"data": "x" * 1000}})


def grow(*_: Any) -> None:
    while True:
        sys.stdout.write("x" * 100_000)


def chatter(ident: Any, _: dict[str, Any]) -> None:
    for number in range(500):
        sys.stderr.write(f"line {number}\n")
        sys.stderr.flush()
    say({"id": ident, "result": text("said")})


def slow(ident: Any, params: dict[str, Any]) -> None:
    token = params["_meta"]["progressToken"]
    for step in range(6):
        time.sleep(0.2)
        progress = {"progressToken": token, "progress": step, "total": 6}
        say({"method": "notifications/progress", "params": progress})
    say({"id": ident, "result": text("done")})


def refuse(ident: Any, _: dict[str, Any]) -> None:
    say({"id": ident, "error": {"code": -32000, "message": "not today"}})


def ask_back(ident: Any, _: dict[str, Any]) -> None:
    say({"id": "q", "method": "sampling/createMessage", "params": {}})
    say({"id": ident, "result": text("asked")})


def renew(ident: Any, _: dict[str, Any]) -> None:
    say({"method": "notifications/tools/list_changed"})
    say({"id": ident, "result": text("renewed")})


def hang(*_: Any) -> None:
    """Say nothing."""


def wonder(ident: Any, params: dict[str, Any]) -> None:
    """Ask for a name first, as revision 2026-07-28 has it."""
    said = params.get("inputResponses")
    if said is not None:
        say({"id": ident, "result": text(json.dumps([said, params["requestState"]]))})
        return
    fields = {"name": {"type": "string"}, "age": {"type": "integer", "default": 30}}
    schema = {"type": "object", "properties": fields, "required": ["name"]}
    asked = {"message": "Who are you?", "requestedSchema": schema}
    requests = {"who": {"method": "elicitation/create", "params": asked}}
    needed = {"inputRequests": requests, "requestState": "kept"}
    say({"id": ident, "result": {"resultType": "input_required", **needed}})


def dream(ident: Any, params: dict[str, Any]) -> None:
    """Ask a model first, with what the call says of the question."""
    said = params.get("inputResponses")
    if said is not None:
        say({"id": ident, "result": text(json.dumps(said))})
        return
    asked = params["arguments"]["ask"]
    requests = {
        key: {"method": "sampling/createMessage", "params": each}
        for key, each in asked.items()
    }
    if params["arguments"].get("who"):
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        form = {"message": "Who?", "requestedSchema": schema}
        requests["who"] = {"method": "elicitation/create", "params": form}
    needed = {"resultType": "input_required", "inputRequests": requests}
    say({"id": ident, "result": needed})


def where(ident: Any, params: dict[str, Any]) -> None:
    """Ask for the roots first, in the way of either age."""
    said = params.get("inputResponses")
    if said is not None:
        say({"id": ident, "result": text(json.dumps(said["at"]))})
    elif "io.modelcontextprotocol/protocolVersion" in params["_meta"]:
        requests = {"at": {"method": "roots/list", "params": {}}}
        needed = {"resultType": "input_required", "inputRequests": requests}
        say({"id": ident, "result": needed})
    else:
        say({"id": "w", "method": "roots/list"})
        told = next(messages())
        kept = told.get("result", told.get("error"))
        say({"id": ident, "result": text(json.dumps(kept))})


def interview(ident: Any, params: dict[str, Any]) -> None:
    """Ask one question after the other in the midst of the call, as older ones do."""
    told = []
    for number, question in enumerate(params["arguments"]["ask"]):
        say({"id": number, **question})
        for message in messages():
            if message.get("method") == "notifications/cancelled":
                return
            if message.get("id") == number and "method" not in message:
                told.append(message.get("result", message.get("error")))
                break
    say({"id": ident, "result": text(json.dumps(told))})


def change_mind(ident: Any, params: dict[str, Any]) -> None:
    """Ask, and want no answer any more a little later."""
    say({"id": "q", **params["arguments"]["ask"][0]})
    time.sleep(0.3)
    params = {"requestId": "q"}
    say({"method": "notifications/cancelled", "params": params})
    say({"id": "p", "method": "ping"})
    told = next(messages())
    say({"id": ident, "result": text(json.dumps(told["id"]))})


def messages() -> Iterator[dict[str, Any]]:
    """What it is told, as it comes; each is a line of the log."""
    heard = Path(sys.argv[1]).with_suffix(".log")
    for line in sys.stdin:
        with heard.open("a") as log:
            log.write(line)
        yield json.loads(line)


ODD: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "hang": hang,
    "crash": end,
    "flood": flood,
    "huge": grow,
    "slow": slow,
    "chatter": chatter,
    "refuse": refuse,
    "ask_back": ask_back,
    "renew": renew,
    "wonder": wonder,
    "dream": dream,
    "where": where,
    "interview": interview,
    "change_mind": change_mind,
}


def call(ident: Any, params: dict[str, Any]) -> None:
    name, arguments = params["name"], params.get("arguments", {})
    if name in ODD:
        ODD[name](ident, params)
        return
    results: dict[str, Callable[[], dict[str, Any]]] = {
        "everything": everything,
        "environment": lambda: text(json.dumps(dict(os.environ))),
        "fail": lambda: {**text("went wrong"), "isError": True},
    }
    result = results.get(name, lambda: text(json.dumps(arguments)))()
    say({"id": ident, "result": result})


def main() -> None:
    told = Path(sys.argv[1])
    said = json.loads(told.read_text())
    if said.get("child"):
        subprocess.Popen(["sleep", said["child"]])
    for message in messages():
        ident, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case "server/discover" if said.get("modern"):
                say({"id": ident, "result": {"supportedVersions": ["2026-07-28"]}})
            case "initialize" if not said.get("modern"):
                sys.stdout.write("Welcome to a program that greets.\n")
                version = params["protocolVersion"]
                info = {"name": "fake", "version": "1"}
                capabilities = {"tools": {"listChanged": True}}
                result = {"protocolVersion": version, "serverInfo": info}
                say({"id": ident, "result": {**result, "capabilities": capabilities}})
            case "tools/list":
                said = json.loads(told.read_text())
                tools = [
                    {"inputSchema": {"type": "object"}, **t} for t in said["tools"]
                ]
                at, size = int(params.get("cursor", 0)), said.get("page", 1000)
                more = at + size < len(tools)
                page: dict[str, Any] = {"tools": tools[at : at + size]}
                if more:
                    page["nextCursor"] = str(at + size)
                say({"id": ident, "result": page})
            case "tools/call":
                call(ident, params)
            case str() if ident is not None:
                error = {"code": -32601, "message": "no such method"}
                say({"id": ident, "error": error})
    while said.get("child"):
        # One that does not end with its input, as some do.
        time.sleep(1)


if __name__ == "__main__":
    main()
