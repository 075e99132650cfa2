"""The facts of ``facts.toml``, read once: tables that are data rather than code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

FACTS: Mapping[str, Any] = MappingProxyType(
    tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
)
