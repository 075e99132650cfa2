"""Collecting findings while a document is walked: paths, types, limits and modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from agenthost_toml.problems import dotted

from .findings import Finding, Json, Path, shorten
from .globs import check_glob, is_literal
from .urls import compile_url
from .validators import compile_validator

MAX_FINDINGS = 100
# About one microsecond each: what compiling a document's patterns may cost.
MAX_PATTERN_COST = 300_000
_REPEATED_COST = 40_000
_GLOB_COST = 150
_URL_COST = 600
_GROUP_COST = 150_000


class TooManyFindings(Exception):
    """Enough has been found to stop looking."""


@dataclass(slots=True)
class Findings:
    """What is wrong so far: ``errors`` in either mode, ``strict`` in strict only.

    ``host`` is the platform whose tables are known, None when they know all;
    ``platforms`` are those of the capability that is being walked.
    """

    errors: list[Finding] = field(default_factory=list)
    strict: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    cost: int = 0
    host: str | None = None
    platforms: tuple[str, ...] | None = None

    def add(self, finding: Finding, *, strict_only: bool = False) -> None:
        """Note a problem.

        Raises:
            TooManyFindings: There are enough errors. What only strict validation
                refuses never stops the walk, for the file may still be used.
        """
        if not strict_only:
            self.errors.append(finding)
        elif len(self.strict) < MAX_FINDINGS:
            self.strict.append(finding)
        if len(self.errors) >= MAX_FINDINGS:
            raise TooManyFindings


@dataclass(frozen=True, slots=True)
class Spot:
    """A value of the document and the way to it.

    ``path`` leads from the top, ``steps`` from the capability.
    """

    findings: Findings
    value: Json
    path: Path = ()
    steps: Path = ()
    capability: str = ""

    def at(self, step: str | int) -> Spot:
        """The member with this key or index; None where there is no such key."""
        inner: Json = None
        if isinstance(self.value, Mapping) and isinstance(step, str):
            inner = self.value.get(step)
        elif isinstance(self.value, list) and isinstance(step, int):
            inner = self.value[step]
        path, steps = (*self.path, step), (*self.steps, step)
        return Spot(self.findings, inner, path, steps, self.capability)

    def has(self, key: str) -> bool:
        """Whether the value is an object with this key."""
        return isinstance(self.value, Mapping) and key in self.value

    def fail(self, message: str, *, strict_only: bool = False) -> None:
        """Note a problem with this value."""
        self.findings.add(self._finding(message), strict_only=strict_only)

    def doubt(self, message: str) -> None:
        """Note an unknown name: no error where only another platform has the table."""
        found = self.findings
        known = found.host is None or found.platforms is None
        if not known and found.host not in (found.platforms or ()):
            only = ", ".join(found.platforms or ()) or "no platform"
            note = f"{message} (counts on {only})"
            if len(found.warnings) < MAX_FINDINGS:
                found.warnings.append(self._finding(note))
        else:
            self.fail(message)

    def _finding(self, message: str) -> Finding:
        return Finding(
            message,
            capability=str(shorten(self.capability)),
            field=dotted(self.steps),
            value=shorten(self.value),
            path=self.path,
        )

    def array(self, *, nullable: bool = False) -> Sequence[Json]:
        """The value as an array; anything else is noted, and read as empty."""
        if isinstance(self.value, list):
            return self.value
        if self.value is not None or not nullable:
            self.fail("must be an array" + (" or null" if nullable else ""))
        return ()

    def items(self, *, nullable: bool = False) -> Iterator[Spot]:
        """Yield the items of an array, each with its place."""
        return map(self.at, range(len(self.array(nullable=nullable))))

    def text(self) -> str | None:
        """The value as text, or None after noting that it is none."""
        if isinstance(self.value, str):
            return self.value
        self.fail("must be a string")
        return None

    def flag(self, default: bool) -> bool:  # noqa: FBT001 - the value of the field
        """The value as a boolean, or the default after noting that it is none."""
        if isinstance(self.value, bool):
            return self.value
        self.fail("must be true or false")
        return default

    def label(self) -> str | None:
        """The value as a glob of labels."""
        return self._pattern(_glob_cost, _GLOB_COST)

    def url(self) -> str | None:
        """The value as a URL pattern."""
        return self._pattern(_url_cost, _GROUP_COST if self._has("(") else _URL_COST)

    def regex(self, *, raw: bool) -> str | None:
        """The value as a validator."""
        failed = _REPEATED_COST if self._has("{") else _URL_COST
        return self._pattern(partial(_regex_cost, raw=raw), failed)

    def _has(self, character: str) -> bool:
        """Whether it is text with what makes a pattern dear that is refused."""
        return isinstance(self.value, str) and character in self.value

    def _pattern(self, compile_text: Callable[[str], int], failed: int) -> str | None:
        """Compile the value, whose cost is known then, or ``failed`` at most."""
        text = self.text()
        if text is None:
            return None
        if self.findings.cost > MAX_PATTERN_COST:
            self.fail("the patterns of this file cost too much to compile; split it")
            raise TooManyFindings
        try:
            self.findings.cost += compile_text(text)
        except ValueError as error:
            self.findings.cost += failed
            self.fail(str(error))
            return None
        return text


def _glob_cost(glob: str) -> int:
    check_glob(glob)
    return 1 if is_literal(glob) else _GLOB_COST


def _url_cost(pattern: str) -> int:
    if not compile_url(pattern).hasRegExpGroups:
        return _URL_COST
    # A counted repetition may stand for any size, other groups are as long as written.
    return _GROUP_COST if "{" in pattern else _URL_COST + 200 * len(pattern)


def _regex_cost(source: str, *, raw: bool) -> int:
    return compile_validator(source, raw=raw).programsize + 50
