"""agenthost: a plugin host with one turn engine.

Plugins import from here and from ``agenthost.testing``, nothing else of the kernel. The
names stand in ``__init__.pyi``, once; each is imported when it is first used, so that a
plugin's import stays cheap.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

_LINE = "from "


def _homes() -> dict[str, str]:
    """Read which module each name lives in."""
    homes = {}
    for line in Path(__file__).with_suffix(".pyi").read_text("utf-8").splitlines():
        if line.startswith(_LINE):
            _, module, _, name, *_ = line.split()
            homes[name] = module
    return homes


_HOMES = _homes()
__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
