"""The list of channels tells what is switched on and what is missing."""

import asyncio

from agenthost.testing import Daemons

CONFIG = """
[channels.email]
agent = "helper"
enabled = false
[channels.matrix]
agent = "helper"
enabled = false
[channels.names]
agent = "helper"
[channels.gitter]
agent = "helper"
"""


async def test_channels_are_listed_with_what_they_lack(daemons: Daemons) -> None:
    variables = {"MATRIX_ACCESS_TOKEN": "s3cr3t"}
    daemon = await daemons.start(config=CONFIG, environ=variables)
    answer = await daemon.http.get("/api/channels")
    listed = answer.json()
    rows = {row["name"]: row for row in listed["channels"]}
    assert [*rows] == sorted(rows)
    # Those of the requirement, MQTT, and one that only the configuration names.
    assert listed["total"] == len(rows) == 42
    assert "s3cr3t" not in answer.text
    told = {
        name: tuple(rows[name][key] for key in ("enabled", "has_token", "available"))
        for name in ("matrix", "email", "irc", "gitter", "names", "whatsapp")
    }
    assert told == {
        "matrix": (False, True, True),
        "email": (False, False, True),
        "irc": (False, False, True),
        "gitter": (True, False, False),
        "names": (True, False, False),
        "whatsapp": (False, False, False),
    }
    assert [*rows["matrix"]][:3] == ["name", "enabled", "has_token"]
    assert rows["whatsapp"]["display_name"] == "WhatsApp Cloud API"
    assert not any(row["connected"] for row in rows.values())
    # Channels are begun behind the start.
    async with asyncio.timeout(30):
        while not rows["gitter"]["trouble"]:
            listed = (await daemon.http.get("/api/channels")).json()
            rows = {row["name"]: row for row in listed["channels"]}
    assert rows["gitter"]["trouble"] == "no plugin offers this channel"
    config = (await daemon.http.get("/api/config")).json()
    assert config["channels_configured"] == 2
