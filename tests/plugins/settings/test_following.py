"""A configuration that is another than at the last start is told, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

from agenthost.testing import Daemons

KEY = "canary-master-key-0123456789"
FIRST = f'api_key = "{KEY}"\nlog_level = "info"\napi_kye = "canary-typo"\n'
SECOND = f'api_key = "{KEY}2"\nlog_level = "warning"\n[uploads]\nmax_files = 3\n'


async def changes(daemons: Daemons, home: Path, config: str) -> list[list[str]]:
    """What the trail tells after a start with this configuration, and what it kept."""
    daemon = await daemons.start(home=home, config=config)
    await daemon.daemon.stop()
    daemon = await daemons.start(home=home, config=config)
    rows = await daemon.daemon.store.read(
        "SELECT details FROM audit_entries "
        "WHERE event_type = 'configuration_changed' ORDER BY id"
    )
    kept = await daemon.daemon.store.read("SELECT said FROM configurations")
    assert len(kept) == 1
    assert "canary" not in str([*map(tuple, rows), *map(tuple, kept)])
    await daemon.daemon.stop()
    return [json.loads(row["details"])["keys"] for row in rows]


async def test_changed_keys_are_told_at_the_next_start(
    daemons: Daemons, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert await changes(daemons, home, FIRST) == []
    told = [["api_kye", "log_level", "uploads.max_files"]]
    assert await changes(daemons, home, SECOND) == told
