"""Custom events: people and agents tell of things, and triggers fire at them."""

from __future__ import annotations

import json
import re

from agenthost import Context, Custom, Host, InvalidInput, JsonObject, TooLarge

TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
LONGEST = 32 * 1024
DEEPEST = 32


async def publish(host: Host, context: Context, type_: str, data: JsonObject) -> Custom:
    """Tell of something; what it sets off is on disk when this returns.

    The subject is the agent in whose turn this is, else whoever asks (``kind:name``).

    Raises:
        InvalidInput: The type is no word, or the data is nested too deeply.
        TooLarge: The data is too long.
    """
    _check(type_, data)
    subject = context.owner if context.agent is None else context.agent.id
    event = Custom(subject, host.clock.time(), type_, dict(data), **context.caused)
    if (keep := host.events.keeping(event)) is not None:
        await host.store.write(keep)
    host.events.publish(event)
    return event


def _check(type_: str, data: JsonObject) -> None:
    if not TYPE.fullmatch(type_):
        raise InvalidInput(
            "type", "must be 1 to 128 letters, digits, '.', '_', ':' or '-'"
        )
    level: list[object] = [data]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
    if level:
        raise InvalidInput("data", f"must be nested at most {DEEPEST} deep")
    if len(json.dumps(data)) > LONGEST:
        raise TooLarge(f"data: must be at most {LONGEST} bytes of JSON")


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
