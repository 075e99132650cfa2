"""Check the whole configuration against the models of kernel and plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast, get_args

from agenthost import ConfigError, ConfigSection, PluginError, Plugins, Secret
from agenthost_toml.parse import KeyPath
from agenthost_toml.problems import Shape, bare, dotted, shape_of
from agenthost_toml.settings import Settings as Said
from agenthost_toml.source import SettingsError
from pydantic import BaseModel, RootModel, SecretBytes, SecretStr

from .claims import Claims, idle_sections, settle, shape_with

M = TypeVar("M", bound=BaseModel)

SECRETS = (Secret, SecretStr, SecretBytes)


@dataclass(slots=True)
class CheckedSettings:
    """What plugins read of the configuration.

    Attributes:
        said: What file and environment said at the start, and where.
        claims: The sections, each with its plugin's key and its model.
        idle: The sections that nobody reads, and why not.
        warnings: What was not understood, or has no effect.
        latest: What the file said when it was last read anew.
        reloading: Held while that goes on.
    """

    said: Said
    claims: Claims
    idle: Mapping[str, str]
    warnings: tuple[str, ...]
    _values: Mapping[type[BaseModel], BaseModel] = field(repr=False)
    latest: Said = field(init=False)
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.latest = self.said

    def __call__(self, model: type[M]) -> M:
        """Give a plugin what its section says.

        Raises:
            PluginError: No plugin that is well has registered the model.
        """
        try:
            return cast("M", self._values[model])
        except KeyError:
            raise PluginError(
                f"{model.__name__} is no section of the configuration; offer it with "
                "register_config"
            ) from None

    def replace(self, said: Said, values: Mapping[type[BaseModel], BaseModel]) -> None:
        """Give other values from now on; who has read one before keeps it."""
        self.latest, self._values = said, {**self._values, **values}


async def check(
    said: Said, plugins: Plugins, offered: Sequence[tuple[str, ConfigSection]]
) -> CheckedSettings:
    """Check all that is said, once it is known what could be said.

    Raises:
        ConfigError: A value is wrong; one line for each, naming place and remedy.
    """
    kernel = said.keys.shape
    claims = settle(plugins, offered, kernel)
    idle = idle_sections(plugins, [*kernel, *claims])
    shape = shape_with(kernel, claims, idle)
    try:
        said = said.reshaped(shape)
        warnings = (*said.warnings, *_unread(said, idle), *_exposed(said, shape))
    except SettingsError as error:
        raise ConfigError(str(error)) from error
    checks = [
        (key, partial(_checked, said, model, path_of(name)))
        for name, (key, model) in claims.items()
    ]
    read = [value for _, value in await plugins.run_each("configuration", checks)]
    wrong = [str(value) for value in read if isinstance(value, SettingsError)]
    if wrong:
        raise ConfigError("\n".join(wrong))
    values = {type(value): value for value in read if isinstance(value, BaseModel)}
    return CheckedSettings(said, claims, idle, warnings, values)


def path_of(name: str) -> KeyPath:
    """Take the name of a section apart."""
    return tuple(name.split("."))


def _checked(said: Said, model: type[BaseModel], at: KeyPath) -> object:
    # Returned, not raised: what an operator wrote is no failure of the plugin.
    try:
        if said.said(at) is None and (usual := usual_of(model)) is not None:
            return usual
        return said.checked(model, at)
    except SettingsError as error:
        return error


def usual_of(model: type[BaseModel]) -> BaseModel | None:
    """Give what a section is of which nothing is said; None where that must be checked.

    Its defaults are right as they stand: for most sections of most configurations this
    spares a start the building of what would check them.
    """
    fields = model.model_fields
    rules = model.__pydantic_decorators__
    if rules.model_validators or rules.root_validators:
        return None
    told = model.model_config.get("validate_default")
    if any(f.is_required() or f.validate_default or told for f in fields.values()):
        return None
    if issubclass(model, RootModel):
        root = fields["root"].get_default(call_default_factory=True)
        return model.model_construct(root, _fields_set=set())
    return model.model_construct()


def _unread(said: Said, idle: Mapping[str, str]) -> Iterator[str]:
    """Tell of the sections that are said, though nobody reads them."""
    for name, text in idle.items():
        table = said.said(path_of(name))
        # Who switches it off has what they want.
        if table and not (isinstance(table, dict) and table.get("enabled") is False):
            place = said.where(path_of(name))
            yield f"{place}: {text}" if place else text


def _exposed(said: Said, shape: Shape) -> Iterator[str]:
    """Warn of secrets in a file that others can read."""
    if not said.source.shared:
        return
    places = [path for path in secret_paths(shape) if _text_in(said.said(path))]
    named = [dotted(path) for path in places if said.source.where(path)]
    if named:
        yield (
            f"{said.source.name}: other users of this machine can read it, and "
            f"{' and '.join(named)} may hold a secret; chmod 600 it"
        )


def _text_in(value: Any) -> bool:
    """Tell whether there is text in a value: numbers are no secrets."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return any(map(_text_in, value))
    return isinstance(value, str)


def secret_paths(shape: Shape, at: KeyPath = ()) -> Iterator[KeyPath]:
    """Find where secrets may stand; nobody knows what a section without model holds."""
    for name, annotation in shape.items():
        if isinstance(annotation, Mapping):
            yield from secret_paths(annotation, (*at, name))
        elif annotation is Any or holdssecret_paths(annotation):
            yield (*at, name)


def holdssecret_paths(annotation: Any, seen: tuple[Any, ...] = ()) -> bool:
    """Tell whether values of a type have a secret in them, at any depth."""
    if annotation in SECRETS:
        return True
    # A table may have tables of its own type.
    if any(annotation is each for each in seen):
        return False
    shape = shape_of(annotation)
    below = get_args(bare(annotation)) if shape is None else shape.values()
    return any(holdssecret_paths(each, (*seen, annotation)) for each in below)
