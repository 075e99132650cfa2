"""Read an agent's manifest: TOML in, a typed manifest and warnings out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import problems, unknown_keys
from pydantic import ValidationError

from .errors import InvalidInput, TooLarge
from .facts import FACTS
from .manifest_model import Manifest

__all__ = ["NOT_YET", "Manifest", "ParsedManifest", "parse_manifest"]

LARGEST = 1024 * 1024

NOT_YET: tuple[str, ...] = tuple(FACTS["manifest"]["not_yet"])
"""Keys that are read and kept, but change nothing in this version."""


@dataclass(frozen=True, slots=True)
class ParsedManifest:
    """A manifest, and what in it was not understood or is not used."""

    manifest: Manifest
    warnings: tuple[str, ...] = ()


def parse_manifest(text: str) -> ParsedManifest:
    """Read a manifest that may come from a stranger.

    Raises:
        InvalidInput: Naming ``manifest_toml`` with line and column when it is no TOML,
            else the first key whose value is wrong.
        TooLarge: It is over 1 MiB.
    """
    if len(text) > LARGEST or len(text.encode(errors="replace")) > LARGEST:
        raise TooLarge("manifest_toml: larger than 1 MiB; make it smaller")
    try:
        table = parse_toml(text.replace("\r\n", "\n"))
    except TomlSyntax as error:
        raise InvalidInput("manifest_toml", str(error)) from error
    try:
        manifest = Manifest.model_validate(table)
    except ValidationError as error:
        first = problems(error, table)[0]
        raise InvalidInput(first.key, first.text) from None
    unknown = [f"{p.key}: {p.text}" for p in unknown_keys(Manifest, table)]
    return ParsedManifest(manifest, (*unknown, *_not_yet(manifest)))


def _not_yet(manifest: Manifest) -> list[str]:
    default = Manifest(name=manifest.name)
    unused = [key for key in NOT_YET if _at(manifest, key) != _at(default, key)]
    unused += [
        f"fallback_models.{number}.{key}"
        for number, fallback in enumerate(manifest.fallback_models)
        for key in ("api_key_env", "base_url")
        if getattr(fallback, key) is not None
    ]
    return [f"{key}: read but not used in this version" for key in unused]


def _at(manifest: Manifest, key: str) -> Any:
    value: Any = manifest
    for part in key.split("."):
        value = getattr(value, part)
    return value
