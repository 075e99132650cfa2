"""An application's configuration, as far as capabilities depend on it.

``tauri.conf.json`` (or ``.json5``, or ``Tauri.toml``) and, per platform, a sibling such
as ``tauri.linux.conf.json`` that is merged over it (RFC 7396).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from .findings import Json
from .findings import Path as Steps
from .reading import Document, read_file
from .terms import PLATFORMS

NAMES = ("tauri.conf.json", "tauri.conf.json5", "Tauri.toml")
SELECTED: Steps = ("app", "security", "capabilities")


class AppConfig:
    """The configuration, per platform; ``document`` is None where there is none."""

    def __init__(
        self, document: Document | None = None, patches: Mapping[str, Json] = {}
    ) -> None:
        self.document = document
        self._patches = patches
        self.on = lru_cache(maxsize=len(PLATFORMS))(self._on)

    def _on(self, platform: str) -> Json:
        base = self.document.value if self.document else {}
        return _merged(base, self._patches.get(platform, {}))

    def selected(self, platform: str) -> Sequence[Json]:
        """The capabilities that count, by name or inline; empty for all files'."""
        found = self._at(platform, *SELECTED)
        return found if isinstance(found, list) else ()

    def identifier(self, platform: str) -> str:
        """The application's identifier, "" when it has none."""
        found = self._at(platform, "identifier")
        return found if isinstance(found, str) else ""

    def windows(self, platform: str) -> list[Mapping[str, Json]]:
        """The windows that the configuration opens or names."""
        found = self._at(platform, "app", "windows")
        items = found if isinstance(found, list) else []
        return [item for item in items if isinstance(item, Mapping)]

    def labels(self) -> set[str]:
        """The labels of all windows, on whichever platform."""
        windows = [window for p in PLATFORMS for window in self.windows(p)]
        return {str(window.get("label", "main")) for window in windows}

    def opens(self, platform: str) -> bool | str:
        """What ``shell:open`` takes: True its usual links, or a regular expression."""
        found = self._at(platform, "plugins", "shell", "open")
        return found if isinstance(found, bool | str) else True

    def pages(self, platform: str) -> Iterator[tuple[Steps, str]]:
        """Yield the addresses that released windows are served from."""
        for key in ("frontendDist", "frontend-dist"):
            yield from _text(("build", key), self._at(platform, "build", key))
        for place, window in enumerate(self.windows(platform)):
            yield from _text(("app", "windows", place, "url"), window.get("url"))

    def _at(self, platform: str, *steps: str | int) -> Json:
        value: Any = self.on(platform)
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        found: Json = value
        return found


def read_config(root: Path) -> AppConfig:
    """Read the configuration of the folder ``src-tauri``, whatever it is called.

    Raises:
        CapabilityError: A file cannot be read.
    """
    base = _first(root, NAMES)
    patches = {}
    for platform in PLATFORMS:
        name = platform.lower()
        files = (f"tauri.{name}.conf.json", f"tauri.{name}.conf.json5")
        patch = _first(root, (*files, f"Tauri.{name}.toml"))
        if patch is not None:
            patches[platform] = patch.value
    return AppConfig(base, patches)


def has_config(folder: Path) -> bool:
    """Tell whether a folder holds an application's configuration."""
    return any((folder / name).is_file() for name in NAMES)


def _first(root: Path, names: Sequence[str]) -> Document | None:
    found = next((root / name for name in names if (root / name).is_file()), None)
    return read_file(found) if found else None


def _text(steps: Steps, value: Json) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield steps, value


def _merged(base: Json, patch: Json) -> Json:
    if not isinstance(patch, Mapping):
        return patch
    merged: dict[str, Json] = dict(base) if isinstance(base, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
