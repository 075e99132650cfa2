"""What an agent may do, and the tools that its model is shown."""

from __future__ import annotations

from agenthost import Manifest
from agenthost.testing import RunningDaemon


async def test_granted_tools_come_sorted_and_by_any_name(daemon: RunningDaemon) -> None:
    def shown(*tools: str) -> list[str]:
        asked = {"name": "ada", "capabilities": {"tools": list(tools)}}
        rights = daemon.daemon.toolbox.rights_of("ada", Manifest.model_validate(asked))
        return [tool.name for tool in rights.tools]

    assert shown("system_time", "memory_*", "calculate") == [
        "calculate",
        "kv_get",
        "kv_set",
        "memory_search",
        "system_time",
    ]
    assert shown() == []
