"""Lints: what is valid and most likely not what was meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from agenthost_toml.problems import dotted
from agenthost_toml.suggest import nearest

from .findings import TOLD, Finding, Json, Path, shorten
from .folders import variables
from .globs import matches
from .manifests import Permission, hyphens
from .positions import nearest_line
from .project import Project
from .reading import Document
from .rules import RULES
from .sources import handlers, named
from .tables import Tables
from .terms import PLATFORMS, RUNS
from .validation import lines_of

FIELDS = frozenset(
    {
        "$schema",
        "description",
        "identifier",
        "local",
        "permissions",
        "platforms",
        "remote",
        "webviews",
        "windows",
    }
)
INTERPRETERS = frozenset(
    {
        *("ash", "bash", "csh", "dash", "fish", "ksh", "sh", "zsh"),
        *("cmd", "cscript", "osascript", "powershell", "pwsh", "wscript"),
        *("bun", "deno", "lua", "node", "perl", "php", "python", "python3", "ruby"),
    }
)
_ANYTHING = re.compile(r"\^?(?:\(\?:?)?(?:\.|\[\\s\\S\]|\\S)[*+]\)?\$?\Z")
_LOOPBACK = re.compile(
    r"https?://(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?:[:/]|\Z)", re.IGNORECASE
)
_REMOTE = re.compile(r"(?P<scheme>[^:]*)://(?P<host>[^/:]*)")


class Lint(NamedTuple):
    """Something that a rule found: where in which document, and what to say of it."""

    rule: str
    message: str
    document: Document | None
    path: Path = ()
    capability: str = ""
    file: str = ""
    line: int | None = None
    field: str = ""


class Spotted(NamedTuple):
    """A capability as it is written, and where it stands."""

    document: Document
    path: Path
    value: Mapping[str, Any]
    tables: Tables

    @property
    def name(self) -> str:
        """Its identifier."""
        return str(self.value.get("identifier", ""))

    def found(self, rule: str, message: str, *steps: str | int) -> Lint:
        """Make a lint of something in the capability."""
        path = (*self.path, *steps)
        return Lint(rule, message, self.document, path, self.name, field=dotted(steps))

    def entries(self) -> Iterator[tuple[int, str, Mapping[str, Any], set[str]]]:
        """Yield each permission: its place, name, scope, and the commands it allows."""
        for place, entry in enumerate(_list(self.value, "permissions")):
            scoped = entry if isinstance(entry, Mapping) else {}
            name = scoped.get("identifier") if scoped else entry
            if isinstance(name, str):
                allowed = {c for p in self.expanded(name) for c in p.allow}
                yield place, name, scoped, allowed

    def expanded(self, name: str) -> tuple[Permission, ...]:
        """What a permission stands for; nothing when it is unknown."""
        try:
            return self.tables.expand(name)
        except ValueError:
            return ()

    def programs(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield the programs that scopes allow, and the way to each."""
        for place, name, scope, _ in self.entries():
            if name.startswith("shell:"):
                for number, item in enumerate(_list(scope, "allow")):
                    if isinstance(item, Mapping):
                        yield ("permissions", place, "allow", number), item


def lint(project: Project, ignore: frozenset[str] = frozenset()) -> list[Finding]:
    """Find what is most likely not meant, in the order of files and lines.

    Args:
        project: What was read; what is invalid in it is not told again.
        ignore: Rules, or ``rule=capability``, that are not to be told.
    """
    spotted = [s for d in project.documents for s in _spotted(d, project.tables)]
    found = [item for spot in spotted for check in OF_EACH for item in check(spot)]
    found += [item for check in OF_ALL for item in check(project, spotted)]
    kept = [
        item
        for item in found
        if not {item.rule, f"{item.rule}={item.capability}"} & ignore
    ]
    # The same page is found on each platform.
    told = {str(finding): finding for finding in _placed(kept)}
    return sorted(told.values(), key=lambda finding: (finding.file, finding.line or 0))


def _spotted(document: Document, tables: Tables) -> Iterator[Spotted]:
    value = document.value
    path: Path = ()
    if isinstance(value, Mapping) and "capabilities" in value:
        value, path = value["capabilities"], ("capabilities",)
    if isinstance(value, Mapping):
        yield Spotted(document, path, value, tables)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            if isinstance(item, Mapping):
                yield Spotted(document, (*path, place), item, tables)


def _placed(items: list[Lint]) -> Iterator[Finding]:
    """Yield the findings with their lines; each document is read once for them all."""
    paths: dict[int, list[Path]] = {}
    for item in items:
        paths.setdefault(id(item.document), []).append(item.path)
    lines: dict[int, dict[Path, int]] = {}
    for item in items:
        key, line = id(item.document), item.line
        if item.document is not None and line is None:
            if key not in lines:
                lines[key] = lines_of(item.document, paths[key])
            line = nearest_line(lines[key], item.path)
        yield _finding(item, line)


def _finding(item: Lint, line: int | None) -> Finding:
    rule, document = RULES[item.rule], item.document
    return Finding(
        f"{item.message}; {rule.remedy}",
        capability=str(shorten(item.capability)),
        field=item.field,
        path=item.path,
        file=item.file or (document.name if document else ""),
        line=line,
        rule=item.rule,
    )


def _unknown_field(spot: Spotted) -> Iterator[Lint]:
    for key in islice((k for k in spot.value if k not in FIELDS), TOLD):
        near = nearest(key, FIELDS)
        hint = f", unlike {near!r}" if near else ""
        yield spot.found("unknown-field", f"{shorten(key)!r} is no field{hint}", key)


def _grants_nothing(spot: Spotted) -> Iterator[Lint]:
    remote = spot.value.get("remote")
    urls = _list(remote, "urls") if isinstance(remote, Mapping) else []
    if not _list(spot.value, "windows") and not _list(spot.value, "webviews"):
        yield spot.found("grants-nothing", "names no window and no webview")
    elif spot.value.get("local") is False and not urls:
        yield spot.found(
            "grants-nothing", "is for no local and no remote page", "local"
        )
    elif spot.value.get("platforms") == []:
        yield spot.found("grants-nothing", "counts on no platform", "platforms")


def _braces(spot: Spotted) -> Iterator[Lint]:
    for key, place, label in _labels(spot):
        if "{" in label or "}" in label:
            problem = f"{label!r} matches a label with braces only"
            yield spot.found("braces-in-label", problem, key, place)


def _scopes(spot: Spotted) -> Iterator[Lint]:
    scoped: set[str] = set()
    for place, name, scope, allowed in spot.entries():
        if name.startswith("shell:") and _list(scope, "allow"):
            scoped |= allowed & RUNS
            if not allowed & RUNS and any(p.allow for p in spot.expanded(name)):
                problem = f"{name} runs no program; its scope is idle"
                yield spot.found("idle-scope", problem, "permissions", place, "allow")
    for place, name, _, allowed in spot.entries():
        for command in sorted((allowed & RUNS) - scoped):
            rule = "other-command" if scoped else "no-scope"
            what = f"{name} has no scope for {command}"
            yield spot.found(rule, what, "permissions", place)


def _programs(spot: Spotted) -> Iterator[Lint]:
    for path, item in spot.programs():
        cmd = item.get("cmd")
        if not isinstance(cmd, str):
            continue
        if not cmd:
            yield spot.found("empty-program", "'cmd' is empty", *path, "cmd")
        elif _is_literal(cmd):
            yield spot.found("literal-path", f"{cmd!r} stays as it is", *path, "cmd")
        elif _program(cmd) in INTERPRETERS and _is_free(item.get("args")):
            problem = f"{cmd!r} with these arguments runs anything"
            yield spot.found("open-interpreter", problem, *path, "args")


def _is_literal(cmd: str) -> bool:
    if cmd.startswith("~"):
        return True
    variable, *parts = cmd.removeprefix("$").replace("\\", "/").split("/")
    return cmd.startswith("$") and (variable not in variables() or ".." in parts)


def _program(cmd: str) -> str:
    return cmd.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")


def _is_free(args: Json) -> bool:
    if args is True:
        return True
    items = args if isinstance(args, list) else []
    sources = [i.get("validator") for i in items if isinstance(i, Mapping)]
    return any(isinstance(s, str) and _ANYTHING.match(s) for s in sources)


def _wide_remote(spot: Spotted) -> Iterator[Lint]:
    remote = spot.value.get("remote")
    for place, url in enumerate(_list(remote, "urls")):
        parts = _REMOTE.match(url) if isinstance(url, str) else None
        if parts and (problem := _wide(parts["scheme"], parts["host"])):
            yield spot.found(
                "wide-remote", f"{url!r} {problem}", "remote", "urls", place
            )


def _wide(scheme: str, host: str) -> str:
    names = host.lstrip("*.")
    if host.startswith("*") and "." not in names:
        return "takes in pages of any owner"
    if scheme.startswith("http") and scheme != "https" and host != "localhost":
        return "takes in pages that anybody on the way can change"
    return "takes in every scheme" if scheme == "*" else ""


def _denials(project: Project, spotted: list[Spotted]) -> Iterator[Lint]:
    """Find denials in capabilities that do not meet all whom another one allows."""
    del project
    allowed: dict[str, dict[str, str]] = {}
    for spot in spotted:
        labels = {label: spot.name for _, _, label in _labels(spot)}
        for _, _, _, commands in spot.entries():
            for command in commands:
                allowed.setdefault(command, {}).update(labels)
    for spot in spotted:
        mine = {label for _, _, label in _labels(spot)}
        for place, entry in enumerate(_list(spot.value, "permissions")):
            name = entry.get("identifier") if isinstance(entry, Mapping) else entry
            for denied in () if "*" in mine else _denied(spot, name):
                labels = allowed.get(denied, {})
                other = next((label for label in labels if label not in mine), None)
                if other is not None:
                    problem = f"{name} takes {denied} from {labels[other]!r} too"
                    yield spot.found("deny-elsewhere", problem, "permissions", place)
                    break


def _denied(spot: Spotted, name: object) -> list[str]:
    expanded = spot.expanded(name) if isinstance(name, str) else ()
    return [command for permission in expanded for command in permission.deny]


def _windows(project: Project, spotted: list[Spotted]) -> Iterator[Lint]:
    if project.root is None or project.config.document is None:
        return
    windows = project.config.labels()
    if not windows:
        return
    open_ = [
        (spot, key, place, label)
        for spot in spotted
        for key, place, label in _labels(spot)
        if not any(_matches(label, window) for window in windows)
    ]
    texts = {re.split(r"[*?\[]", label)[0] for _, _, _, label in open_} - {""}
    known = named(project.root, texts) if texts else set()
    for spot, key, place, label in open_:
        start = re.split(r"[*?\[]", label)[0]
        if start and start not in known and "{" not in label:
            problem = f"no window is called {label!r}"
            yield spot.found("no-such-window", problem, key, place)


def _matches(glob: str, label: str) -> bool:
    try:
        return matches(glob, label)
    except ValueError:
        return True


def _own_commands(project: Project, spotted: list[Spotted]) -> Iterator[Lint]:
    del spotted
    own = project.tables.modules.get("")
    found = handlers(project.root) if project.root and own else []
    if own is None or not found:
        return
    registered = {hyphens(handler.command) for handler in found}
    for handler in found:
        if hyphens(handler.command) not in own.commands:
            problem = f"the command {handler.command!r} has no permission"
            rule, file = "command-not-listed", str(handler.file)
            yield Lint(rule, problem, None, file=file, line=handler.line)
    for command in sorted(own.commands - registered):
        problem = f"no handler has the command {command!r}"
        yield Lint("command-stale", problem, None, file=str(project.root))


def _pages(project: Project, spotted: list[Spotted]) -> Iterator[Lint]:
    config = project.config
    if config.document is None:
        return
    for platform in PLATFORMS:
        for path, page in config.pages(platform):
            granted = any(_meets(spot, page) for spot in spotted)
            if _LOOPBACK.match(page) and not granted:
                problem = f"{page!r} is a remote page, to which nothing is granted"
                yield Lint("loopback-page", problem, config.document, path)


def _meets(spot: Spotted, page: str) -> bool:
    from .urls import url_matches

    remote = spot.value.get("remote")
    urls = [u for u in _list(remote, "urls") if isinstance(u, str)]
    try:
        return any(url_matches(url, page) for url in urls)
    except ValueError:
        return False


def _selected(project: Project, spotted: list[Spotted]) -> Iterator[Lint]:
    capabilities = project.report.capabilities
    counted = [c for p in PLATFORMS for c in project.selected(capabilities, p)]
    left_out = {c.identifier for c in capabilities} - {c.identifier for c in counted}
    for spot in spotted:
        if spot.name in left_out:
            yield spot.found("not-selected", "is not selected", "identifier")


def _labels(spot: Spotted) -> Iterator[tuple[str, int, str]]:
    for key in ("windows", "webviews"):
        for place, label in enumerate(_list(spot.value, key)):
            if isinstance(label, str):
                yield key, place, label


def _list(value: object, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


OF_EACH: tuple[Callable[[Spotted], Iterator[Lint]], ...] = (
    _unknown_field,
    _grants_nothing,
    _braces,
    _scopes,
    _programs,
    _wide_remote,
)
OF_ALL: tuple[Callable[[Project, list[Spotted]], Iterator[Lint]], ...] = (
    _denials,
    _windows,
    _own_commands,
    _pages,
    _selected,
)
