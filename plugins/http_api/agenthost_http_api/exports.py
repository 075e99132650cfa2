"""A session as a file: everything that is shown of it, as JSON or as Markdown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agenthost import Host, Session, TooLarge, timestamp

from .shapes import SessionMessage, ToolEntry
from .transcript import visible

MESSAGES = 20_000
"""Messages of one file: it is made in memory."""

Writer = Callable[[Mapping[str, Any], Sequence[SessionMessage]], str]


async def export(host: Host, session: Session, form: str) -> bytes:
    """Write a session down; messages that were summarised stand there in full.

    Args:
        host: Where it is.
        session: What is written.
        form: ``json`` or ``markdown``.

    Raises:
        TooLarge: It has more than 20,000 messages.
    """
    if session.next_seq > MESSAGES:
        raise TooLarge(
            f"the session has more than {MESSAGES} messages; fork it at earlier "
            "messages and export the forks"
        )
    whole = replace(session, first_seq=0, summary=None)
    entries = await host.sessions.entries(whole)
    turns = await host.sessions.turns(session.id)
    facts = {
        "session_id": session.id,
        "title": session.title,
        "agent_id": session.agent_id,
        "agent_name": host.agents.get(session.agent_id).name,
        "created_at": timestamp(session.created_at),
        "exported_at": timestamp(host.clock.time()),
    }

    def write() -> bytes:
        text = _WRITERS[form](facts, visible(whole, entries, turns))
        # Half a surrogate pair, which a model may have said, has no UTF-8 form.
        return text.encode("utf-8", "replace")

    # A long one would hold up everybody else.
    return await asyncio.to_thread(write)


def _json(facts: Mapping[str, Any], messages: Sequence[SessionMessage]) -> str:
    return json.dumps({**facts, "messages": messages}, ensure_ascii=False, indent=1)


def _markdown(facts: Mapping[str, Any], messages: Sequence[SessionMessage]) -> str:
    title = facts["title"] or "Untitled"
    head = f"# {title}\n\n{facts['agent_name']}, {facts['created_at']}\n"
    return "\n".join([head, *map(_section, messages)])


def _section(message: SessionMessage) -> str:
    lines = [f"## {message['role']}\n", f"{_about(message)}\n"]
    if message["content"]:
        lines.append(f"{message['content']}\n")
    lines += map(_tool, message.get("tools", ()))
    if error := message.get("error"):
        lines.append(f"> {error}\n")
    return "\n".join(lines)


def _about(message: SessionMessage) -> str:
    """Tell on one line when it was said, how it stands and what it took."""
    facts = [message.get("at", ""), message.get("status", "")]
    if images := message.get("images"):
        facts.append(f"{images} images")
    facts += [f"file {file['name']}" for file in message.get("files", ())]
    facts.append(message.get("model", ""))
    if (finish := message.get("finish", "stop")) != "stop":
        facts.append(f"ended by {finish}")
    if usage := message.get("usage"):
        facts.append(
            f"{usage['input_tokens']} + {usage['output_tokens']} tokens, "
            f"{usage['cost_usd']:.6f} USD"
        )
    return f"*{', '.join(fact for fact in facts if fact)}*"


def _tool(tool: ToolEntry) -> str:
    arguments = json.dumps(tool["input"], ensure_ascii=False)
    ended = "failed" if tool["is_error"] else "answered"
    result = "no result" if tool["result"] is None else ended
    called = _fenced(f"{tool['name']}({arguments})\n\n{tool['result'] or ''}".rstrip())
    return f"Tool `{tool['name']}`, {result}:\n\n{called}\n"


def _fenced(text: str) -> str:
    """Fence a text, with more backticks than it has in a row itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


_WRITERS: Mapping[str, Writer] = {"json": _json, "markdown": _markdown}
