"""What a start spares itself of what its dependencies do at their import."""

from __future__ import annotations

import os
import sys
from types import ModuleType


def spare_imports() -> None:
    """Leave out what dependencies import for the sake of others."""
    # Otherwise pydantic would import whatever is installed as its plugin, enabled by
    # nobody, and read the metadata of every distribution to find it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # To find none it would still import importlib.metadata, and all that brings.
    name = "pydantic.plugin._loader"
    vars(sys.modules.setdefault(name, ModuleType(name)))["get_plugins"] = tuple
    # The command line of httpx: where Rich is installed it costs four megabytes.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # reason: what stands as None is not importable
