"""Read the configuration: ``config.toml``, then ``AGENTHOST_*`` over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agenthost_toml.lines import KeyLines
from agenthost_toml.parse import TomlSyntax, parse_toml
from agenthost_toml.problems import Problem, problems, unknown_keys
from pydantic import ValidationError

from .config_env import EnvLayer, read_environment
from .config_model import Config
from .errors import ConfigError

FILE = "config.toml"
ALIASES = {"api_listen": "listen_addr"}
LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The configuration, and what in it was not understood."""

    config: Config
    warnings: tuple[str, ...] = ()


def load_config(home: Path, environ: Mapping[str, str]) -> LoadedConfig:
    """Read ``<home>/config.toml`` and the environment over it.

    An unknown key is a warning; whatever else is wrong stops the start.

    Raises:
        ConfigError: Naming line, key and remedy; also when the API would be open to
            the network by mistake (see :func:`check_exposure`).
    """
    source = _Source(_read(home / FILE))
    file, layer = _parse(source), read_environment(environ, ALIASES)
    warnings = [source.say(p) for p in _unknown(file)] + list(layer.warnings)
    table = _merged(_unalias(file, source), layer.table)
    _place_data(table, home)
    try:
        config = Config.model_validate(table)
    except ValidationError as error:
        said = [_say(p, source, layer) for p in problems(error, table)]
        raise ConfigError("\n".join(said)) from None
    try:
        check_exposure(config)
    except ConfigError as error:
        raise ConfigError(_placed(error, source)) from None
    return LoadedConfig(config, tuple(warnings))


def check_exposure(config: Config) -> None:
    """Refuse an API that is open to the network because nobody thought of it.

    Raises:
        ConfigError: The address is not loopback, there is no key, and nobody said
            ``allow_unauthenticated_network = true``.
    """
    if (
        config.listens_on_loopback
        or config.api_key
        or config.allow_unauthenticated_network
    ):
        return
    raise ConfigError(
        f"listen_addr: {config.listen_addr} can be reached from the network, and "
        "without an api_key anyone there could run agents; set api_key "
        "(AGENTHOST_API_KEY), listen on 127.0.0.1, or say "
        "allow_unauthenticated_network = true"
    )


class _Source:
    """The file's text and where its keys stand."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def lines(self) -> KeyLines:
        return KeyLines(self.text)

    def say(self, problem: Problem) -> str:
        line = self.lines.find(problem.path)
        place = f"{FILE} line {line}" if line else FILE
        return f"{place}: {problem.key}: {problem.text}"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise ConfigError(
            f"{FILE} cannot be read: {reason}; check that it is a file you may read"
        ) from error
    if len(data) > LARGEST:
        raise ConfigError(f"{FILE} is larger than 1 MiB; make it smaller")
    return _decode(data).replace("\r\n", "\n")


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{FILE} line {line}: not UTF-8 text; save the file as UTF-8"
        ) from error


def _parse(source: _Source) -> dict[str, Any]:
    try:
        return parse_toml(source.text)
    except TomlSyntax as error:
        line = source.text.split("\n")[error.line - 1]
        key = line.partition("=")[0].strip() if "=" in line else ""
        where = f"{FILE} line {error.line}, column {error.column}"
        named = f"{key}: " if key.replace("_", "").replace(".", "").isalnum() else ""
        raise ConfigError(
            f"{where}: {named}{error.problem}; correct the TOML there"
        ) from error


def _unknown(table: Mapping[str, Any]) -> list[Problem]:
    known = {key: value for key, value in table.items() if key not in ALIASES}
    return [_misplaced(problem) for problem in unknown_keys(Config, known)]


def _misplaced(problem: Problem) -> Problem:
    key = problem.path[-1]
    top = Config.model_fields
    if len(problem.path) > 1 and key in top:
        hint = f"unknown key, ignored; {key} belongs above the first [table]"
        return Problem(problem.path, hint)
    return problem


def _unalias(table: dict[str, Any], source: _Source) -> dict[str, Any]:
    for alias, name in ALIASES.items():
        if alias not in table:
            continue
        if name in table:
            both = Problem((alias,), f"is the same as {name}; remove one of them")
            raise ConfigError(source.say(both))
        table[name] = table.pop(alias)
    return table


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        merged[key] = _merged(old, value) if both and old is not None else value
    return merged


def _place_data(table: dict[str, Any], home: Path) -> None:
    folder = table.get("data_dir", "data")
    if isinstance(folder, str):
        path = Path(folder or "data")
        if path.parts[:1] == ("~",):
            path = Path.home().joinpath(*path.parts[1:])
        table["data_dir"] = home / path


def _placed(error: ConfigError, source: _Source) -> str:
    for key in ("listen_addr", *ALIASES):
        if line := source.lines.find((key,)):
            return f"{FILE} line {line}: {error.message}"
    return error.message


def _say(problem: Problem, source: _Source, layer: EnvLayer) -> str:
    variable = layer.variable(problem.path)
    if variable is not None:
        return f"{variable}: {problem.key}: {problem.text}"
    for alias, name in ALIASES.items():
        if problem.path == (name,) and source.lines.find((alias,)):
            return source.say(Problem((alias,), problem.text))
    return source.say(problem)
