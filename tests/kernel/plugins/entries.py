"""Entry points made on the spot, and the plugins behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from agenthost import hookimpl
from agenthost.config_model import Config, PluginSelection

GROUPS = {
    "plugin": "agenthost.plugins",
    "tool": "agenthost.tools",
    "provider": "agenthost.providers",
    "channel": "agenthost.channels",
    "security": "agenthost.security",
    "skill_runtime": "agenthost.skill_runtimes",
}


@dataclass(frozen=True)
class Distribution:
    name: str
    version: str = "1.0"


AGENTHOST = Distribution("agenthost", "0.1.0")
OTHER = Distribution("other-plugins", "2.5")


@dataclass
class FakeEntry:
    name: str
    group: str
    load: Callable[[], Any]
    dist: Any = AGENTHOST
    loaded: list[str] = field(default_factory=list)


def entry(key: str, plugin: object = None, dist: Distribution = AGENTHOST) -> FakeEntry:
    kind, _, slug = key.partition(":")
    made = FakeEntry(slug, GROUPS[kind], lambda: None, dist)

    def load() -> object:
        made.loaded.append(key)
        if isinstance(plugin, ModuleType):
            return plugin
        return plugin() if callable(plugin) else module()

    made.load = load
    return made


def module(**hooks: Callable[..., Any]) -> ModuleType:
    """A module whose functions are hook implementations."""
    made = ModuleType("made_on_the_spot")
    for name, function in hooks.items():
        function.__name__ = name
        setattr(made, name, hookimpl(function))
    return made


def config(**plugins: Any) -> Config:
    return Config(data_dir=Path("data"), plugins=PluginSelection(**plugins))
