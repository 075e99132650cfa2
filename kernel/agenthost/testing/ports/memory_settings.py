"""Settings by their models, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar, cast

from agenthost_toml.settings import Settings as Said
from agenthost_toml.source import SettingsError
from pydantic import BaseModel

from ...errors import ConfigError, PluginError
from ...plugins.loader import Plugins
from ...plugins.registry import Sections

M = TypeVar("M", bound=BaseModel)


class MemorySettings:
    """What sections say, by the type of each.

    ``SettingsBackend("memory", MemorySettings.open)`` serves a daemon with it. It does
    not tell which sections have no effect since their plugin is off.

    Args:
        sections: What is said; nothing else was registered.
        warnings: What of the configuration was not understood.

    Example:
        ::

            settings = MemorySettings(Acme(endpoint="http://127.0.0.1:9"))
    """

    def __init__(self, *sections: BaseModel, warnings: tuple[str, ...] = ()) -> None:
        self.warnings = warnings
        self._values: Mapping[type[BaseModel], BaseModel] = {
            type(section): section for section in sections
        }

    def __call__(self, model: type[M]) -> M:
        """Give a plugin what its section says.

        Raises:
            PluginError: It has registered no such model.
        """
        if model not in self._values:
            raise PluginError(f"{model.__name__} is missing; use register_config")
        return cast("M", self._values[model])

    @classmethod
    async def open(
        cls, said: Said, plugins: Plugins, sections: Sections
    ) -> MemorySettings:
        """Read the sections of plugins.

        Raises:
            ConfigError: Values are wrong; a line each.
        """
        shape: dict[str, Any] = deepcopy(dict(said.keys.shape))
        models: dict[type[BaseModel], tuple[str, tuple[str, ...]]] = {}
        for key, section in sections:
            path = tuple(section.name.split("."))
            if section.model not in models and _put(shape, path, section.model):
                models[section.model] = key, path
            else:
                plugins.fail(key, f"the section [{section.name}] is taken")
        try:
            said = said.reshaped(shape)
        except SettingsError as error:
            raise ConfigError(str(error)) from error
        reads = [
            (key, partial(_read, said, m, path)) for m, (key, path) in models.items()
        ]
        found = [value for _, value in await plugins.run_each("configuration", reads)]
        if wrong := [str(value) for value in found if isinstance(value, SettingsError)]:
            raise ConfigError("\n".join(wrong))
        values = (value for value in found if isinstance(value, BaseModel))
        return cls(*values, warnings=said.warnings)


def _put(shape: dict[str, Any], path: tuple[str, ...], model: type[BaseModel]) -> bool:
    """Put a model at its place; False where somebody has that, or part of it."""
    *tables, last = path
    for table in tables:
        inner = shape.setdefault(table, {})
        if not isinstance(inner, dict):
            return False
        shape = inner
    return shape.setdefault(last, model) is model


def _read(
    said: Said, model: type[BaseModel], path: tuple[str, ...]
) -> BaseModel | SettingsError:
    # Given back, not raised: what an operator wrote is no failure of the plugin.
    try:
        return said.checked(model, path)
    except SettingsError as error:
        return error
