"""Channels are offered at no cost, and say what their facts say."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from agenthost_channels.contract import Adapter
from agenthost_channels.facts import facts
from pydantic import BaseModel

OURS = (
    *("bluesky", "discord", "email", "irc", "matrix", "mqtt", "mumble"),
    *("nostr", "ntfy", "slack", "telegram", "webhook", "xmpp"),
)
DOCS = Path(__file__).parents[3] / "docs/channels"


def adapter_of(name: str) -> type[Adapter]:
    """Load the adapter of an installed channel."""
    (entry,) = entry_points(group="agenthost.channels", name=name)
    (spec,) = entry.load().register_channel()
    assert spec.name == name
    adapter: type[Adapter] = spec.load()
    return adapter


@pytest.mark.parametrize("name", OURS)
def test_a_channel_is_an_adapter_with_facts_and_a_page(name: str) -> None:
    adapter = adapter_of(name)
    assert name == facts(name).id
    assert issubclass(adapter, Adapter)
    assert issubclass(adapter.settings, BaseModel)
    assert adapter.needed <= set(adapter.secrets)
    assert f"[channels.{name}]" in (DOCS / f"{name}.md").read_text()


def test_to_offer_them_imports_nothing_of_theirs() -> None:
    imports = "; ".join(f"import agenthost_channels.{name}" for name in OURS)
    program = f"""import sys, agenthost; {imports}
print([name for name in sys.modules if name.startswith("agenthost_channels.")
       and (name.count(".") > 1 or name.endswith(".contract"))])"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
