"""Which plugin has which section of the configuration, and which nobody reads."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenthost import ConfigSection, Plugins
from agenthost_toml.problems import Shape
from pydantic import BaseModel

SECTIONS = Path(__file__).with_name("sections.toml")
WORD = r"[a-z0-9]+(_[a-z0-9]+)*"
NAME = re.compile(rf"{WORD}(\.{WORD})*")
WHY = {
    "disabled": "is off; set, enable and disable of [plugins] say what runs",
    "failed": "is not running: it has failed, or was left out",
}

Claims = Mapping[str, tuple[str, type[BaseModel]]]
"""The sections by name, each with the key of its plugin and its model."""


def settle(
    plugins: Plugins, offered: Sequence[tuple[str, ConfigSection]], kernel: Shape
) -> Claims:
    """Give each section to the first that offers it; a later claim fails its plugin."""
    taken: dict[str, tuple[str, type[BaseModel]]] = {}
    for key, section in offered:
        if reason := _objection(section, taken, kernel):
            plugins.fail(key, f"{key} offers section [{section.name}], {reason}")
        else:
            taken[section.name] = key, section.model
    return {name: own for name, own in taken.items() if plugins.healthy(own[0])}


def _objection(section: ConfigSection, taken: Claims, kernel: Shape) -> str | None:
    if not NAME.fullmatch(section.name):
        return "which is no name: lower-case words, joined by _ or dots, are"
    if not _is_model(section.model):
        return "whose model is no pydantic model"
    owners = {**dict.fromkeys(kernel, "agenthost itself"), **_owners(taken)}
    for name, owner in owners.items():
        if overlap(name, section.name):
            return f"which {owner} has taken with [{name}]"
    for name, (_, model) in taken.items():
        if model is section.model:
            return f"with the model of [{name}]; make a subclass of it"
    return None


def _is_model(model: object) -> bool:
    return isinstance(model, type) and issubclass(model, BaseModel)


def _owners(taken: Claims) -> Mapping[str, str]:
    return {name: key for name, (key, _) in taken.items()}


def overlap(one: str, other: str) -> bool:
    """Tell whether two sections are one, or one lies within the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def idle_sections(plugins: Plugins, taken: Collection[str]) -> dict[str, str]:
    """Name the sections that nobody reads now, and say why not.

    What a plugin would read that was not imported is a guess: the section of its name.
    """
    states = {state.key: state for state in plugins.states()}
    known = tomllib.loads(SECTIONS.read_text(encoding="utf-8"))
    guesses = {
        state.slug.replace("-", "_"): key
        for key, state in states.items()
        if not state.first_party and state.status in WHY
    }
    idle: dict[str, str] = {}
    for name, owner in {**guesses, **known}.items():
        if any(overlap(name, other) for other in (*taken, *idle)):
            continue
        state = states.get(owner)
        if state is None or state.status not in WHY:
            idle[name] = f"no plugin serves [{name}] yet; it has no effect"
        else:
            idle[name] = f"[{name}] has no effect: {owner} {WHY[state.status]}"
    return idle


def shape_with(kernel: Shape, claims: Claims, idle: Collection[str]) -> Shape:
    """Put the sections into the shape of the kernel's own keys."""
    shape: dict[str, Any] = dict(kernel)
    models = {name: model for name, (_, model) in claims.items()}
    for name, model in {**models, **dict.fromkeys(idle, Any)}.items():
        *tables, last = name.split(".")
        inner = shape
        for table in tables:
            inner = inner.setdefault(table, {})
        inner[last] = model
    return shape
