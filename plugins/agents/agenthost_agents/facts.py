"""What ``facts.toml`` says of manifests."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

PROFILES: Mapping[str, list[str]] = _FACTS["profiles"]
"""The tools that each profile stands for."""
TOLD: Mapping[str, Mapping[str, str]] = _FACTS["told"]
"""The tier and the description of each profile."""
IMPLIED: Mapping[str, Mapping[str, list[str]]] = _FACTS["implied"]
"""The rights that come with a profile's tools, by how their names begin."""
FORMER_NAMES: Mapping[str, str] = _FACTS["former_names"]
"""What tools are called now, by the name that they had before."""
UNSERVED: Mapping[str, Mapping[str, Any]] = _FACTS["unserved"]
"""Keys that no plugin reads yet: type, default and what they are about."""
