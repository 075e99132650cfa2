"""What the configuration says to plugins: the port SETTINGS, which a plugin serves."""

from __future__ import annotations

from typing import Protocol, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)


class Settings(Protocol):
    """The plugins' sections of the configuration, checked.

    ``warnings`` say what of the whole configuration was not understood.
    """

    warnings: tuple[str, ...]

    def __call__(self, model: type[M]) -> M:
        """Give a plugin what its section says.

        Args:
            model: The model that it has registered for the section.

        Raises:
            PluginError: It has registered no such model.
        """
