"""What every backend of the port SETTINGS promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from agenthost_toml.settings import Settings as Said
from pydantic import BaseModel, ConfigDict, Field, field_validator

from ...config import load_config
from ...errors import ConfigError, PluginError
from ...plugins.loader import Plugins
from ...plugins.marks import hookimpl
from ...plugins.registry import Sections
from ...plugins.specs import ConfigSection
from ...ports.settings import Settings
from ...secrets import Secret
from ..daemons import provided

OpenSettings = Callable[[Said, Plugins, Sections], Awaitable[Settings]]
SECONDS = 30.0
CANARY = "sk-canary"


class Colours(BaseModel):
    """A section."""

    model_config = ConfigDict(extra="forbid")

    front: str = "blue"
    shades: int = Field(3, ge=1)
    mixed: dict[str, float] = Field(default_factory=dict)
    key: Secret | None = None


class Inner(BaseModel):
    """A section inside another's table."""

    depth: int = 1


class Fragile(BaseModel):
    """A section whose model breaks."""

    value: str = ""

    @field_validator("value")
    @classmethod
    def _breaks(cls, value: str) -> str:
        raise RuntimeError(f"no {value} today")


class Stranger(BaseModel):
    """No section at all."""


def offering(name: str, *sections: ConfigSection) -> ModuleType:
    """A plugin that reads sections."""
    plugin = ModuleType(name)
    plugin.register_config = hookimpl(lambda: sections)  # type: ignore[attr-defined]  # reason: it is made here
    return plugin


PAINTER = offering(
    "painter", ConfigSection("colours", Colours), ConfigSection("deep.inner", Inner)
)


class Read:
    """Settings that were opened, and the plugins that they were opened for."""

    def __init__(self, settings: Settings, plugins: Plugins) -> None:
        self.settings = settings
        self.plugins = {state.key: state for state in plugins.states()}


async def read(
    opened: OpenSettings,
    text: str,
    *plugins: ModuleType,
    environ: Mapping[str, str] | None = None,
) -> Read:
    """Open what a text and an environment say to plugins."""
    entries = provided(plugins)
    enabled = ",".join(f"plugin:{entry.name}" for entry in entries)
    said = {"AGENTHOST_PLUGINS__ENABLE": enabled, **(environ or {})}
    loaded = load_config(Path("home"), said, text)
    known = Plugins(entries)
    await known.load(loaded.config)
    sections: Any = await known.collect("register_config")
    async with asyncio.timeout(SECONDS):
        return Read(await opened(loaded.said, known, sections), known)


class SettingsContract:
    """The settings keep every promise of the port.

    A subclass overrides the fixture ``opened``: what opens the settings, as the
    backend's ``open`` does.

    Example:
        ::

            class TestDirectory(SettingsContract):
                @pytest.fixture
                def opened(self) -> OpenSettings:
                    return open_directory
    """

    @pytest.fixture
    def opened(self) -> OpenSettings:
        """What opens the settings."""
        pytest.fail("override the fixture `opened` with what opens the settings")

    async def test_a_plugin_reads_what_its_section_says(
        self, opened: OpenSettings
    ) -> None:
        """As its model types it, wherever the section stands."""
        text = '[colours]\nfront = "red"\nshades = 7\nmixed = {pink = 0.5}\n'
        found = (await read(opened, f"{text}[deep.inner]\ndepth = 4", PAINTER)).settings
        colours = found(Colours)
        assert isinstance(colours, Colours)
        assert (colours.front, colours.shades) == ("red", 7)
        assert colours.mixed == {"pink": 0.5}
        assert found(Inner).depth == 4
        assert found.warnings == ()

    async def test_a_section_that_says_nothing_has_its_defaults(
        self, opened: OpenSettings
    ) -> None:
        """Whether it is empty or not there."""
        for text in ("", "[colours]\n"):
            found = (await read(opened, text, PAINTER)).settings
            assert found(Colours) == Colours()
            assert found(Inner).depth == 1
            assert found.warnings == ()

    async def test_the_environment_stands_above_the_file(
        self, opened: OpenSettings
    ) -> None:
        """Key by key."""
        environ = {"AGENTHOST_COLOURS__FRONT": "green"}
        text = '[colours]\nfront = "red"\nshades = 7\n'
        found = (await read(opened, text, PAINTER, environ=environ)).settings
        assert (found(Colours).front, found(Colours).shades) == ("green", 7)

    async def test_a_model_that_nobody_registered_is_refused(
        self, opened: OpenSettings
    ) -> None:
        """PluginError names it and the remedy."""
        found = (await read(opened, "", PAINTER)).settings
        with pytest.raises(PluginError, match=r"Stranger.*register_config"):
            found(Stranger)
        with pytest.raises(PluginError):
            found(BaseModel)

    async def test_every_wrong_value_is_named_at_once(
        self, opened: OpenSettings
    ) -> None:
        """ConfigError, a line each, with its key and no value: it may be a secret."""
        text = f'[colours]\nfront = ["{CANARY}"]\nshades = 0\n[deep.inner]\ndepth = "x"'
        with pytest.raises(ConfigError) as refused:
            await read(opened, text, PAINTER)
        told = str(refused.value)
        for key in ("colours.front", "colours.shades", "deep.inner.depth"):
            assert key in told
        assert len(told.splitlines()) == 3
        assert CANARY not in told

    async def test_a_section_that_is_no_table_is_told(
        self, opened: OpenSettings
    ) -> None:
        """ConfigError names it."""
        with pytest.raises(ConfigError, match="colours"):
            await read(opened, "colours = 3", PAINTER)
        with pytest.raises(ConfigError, match="deep"):
            await read(opened, "deep = []", PAINTER)

    async def test_what_was_not_understood_is_a_warning(
        self, opened: OpenSettings
    ) -> None:
        """An unknown key or section, with the place; what is right counts."""
        text = '[colors]\nfront = "red"\n[deep.inner]\ndepth = 2\nwidth = 3\n'
        found = (await read(opened, text, PAINTER)).settings
        told = "\n".join(found.warnings)
        assert len(found.warnings) == 2
        assert "colors" in told
        assert "width" in told
        assert found(Inner).depth == 2

    async def test_secrets_are_not_shown(self, opened: OpenSettings) -> None:
        """Neither by the settings nor in their warnings."""
        text = f'[colours]\nkey = "{CANARY}"\n[colors]\nkey = "{CANARY}"\n'
        found = (await read(opened, text, PAINTER)).settings
        key = found(Colours).key
        assert key is not None
        assert key.reveal() == CANARY
        assert CANARY not in "\n".join(found.warnings)
        assert CANARY not in repr(found(Colours))

    async def test_the_first_has_a_section_and_the_second_fails(
        self, opened: OpenSettings
    ) -> None:
        """Its plugin, alone: the first reads on."""
        second = offering("second", ConfigSection("colours", Inner))
        found = await read(opened, "[colours]\nshades = 7\n", PAINTER, second)
        assert found.settings(Colours).shades == 7
        with pytest.raises(PluginError):
            found.settings(Stranger)
        assert found.plugins["plugin:second"].status == "failed"
        assert found.plugins["plugin:painter"].status == "enabled"

    async def test_a_model_that_breaks_fails_its_plugin_alone(
        self, opened: OpenSettings
    ) -> None:
        """What raises anything but a validation error is a fault of the plugin."""
        fragile = offering("fragile", ConfigSection("fragile", Fragile))
        text = '[fragile]\nvalue = "x"\n[colours]\nshades = 7\n'
        found = await read(opened, text, PAINTER, fragile)
        assert found.settings(Colours).shades == 7
        assert found.plugins["plugin:fragile"].status == "failed"
        with pytest.raises(PluginError):
            found.settings(Fragile)

    async def test_two_daemons_share_nothing(self, opened: OpenSettings) -> None:
        """Each reads its own, also when they are opened together."""
        texts = (f"[colours]\nshades = {number}\n" for number in range(1, 6))
        found = await asyncio.gather(*(read(opened, text, PAINTER) for text in texts))
        assert [each.settings(Colours).shades for each in found] == [1, 2, 3, 4, 5]
