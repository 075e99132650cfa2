"""Collecting findings while a document is walked: paths, types, limits and modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from agenthost_toml.problems import dotted

from .findings import Finding, Json, Path, shorten
from .globs import check_glob, is_literal
from .urls import compile_url
from .validators import compile_validator

MAX_FINDINGS = 100
# About one microsecond each: what compiling a document's patterns may cost.
MAX_PATTERN_COST = 300_000
_FAILED_PATTERN_COST = 40_000
_GLOB_COST = 150
_URL_COST = 600
_URL_GROUP_COST = 150_000


class TooManyFindings(Exception):
    """Enough has been found to stop looking."""


@dataclass(slots=True)
class Findings:
    """What is wrong so far: ``errors`` in either mode, ``strict`` in strict only."""

    errors: list[Finding] = field(default_factory=list)
    strict: list[Finding] = field(default_factory=list)
    cost: int = 0

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
        finding = Finding(
            message,
            capability=str(shorten(self.capability)),
            field=dotted(self.steps),
            value=shorten(self.value),
            path=self.path,
        )
        self.findings.add(finding, strict_only=strict_only)

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
        cost = 1 if is_literal(str(self.value)) else _GLOB_COST
        return self._pattern(check_glob, lambda _: cost)

    def url(self) -> str | None:
        """The value as a URL pattern."""
        return self._pattern(compile_url, _url_cost)

    def regex(self, *, raw: bool) -> str | None:
        """The value as a validator."""
        return self._pattern(
            lambda text: compile_validator(text, raw=raw),
            lambda text: compile_validator(text, raw=raw).programsize + 50,
        )

    def _pattern(
        self, compile_text: Callable[[str], object], cost: Callable[[str], int]
    ) -> str | None:
        text = self.text()
        if text is None:
            return None
        if self.findings.cost > MAX_PATTERN_COST:
            self.fail("the patterns of this file cost too much to compile; split it")
            raise TooManyFindings
        try:
            compile_text(text)
            self.findings.cost += cost(text)
        except ValueError as error:
            self.findings.cost += _failed_cost(str(error))
            self.fail(str(error))
            return None
        return text


def _url_cost(pattern: str) -> int:
    if not compile_url(pattern).hasRegExpGroups:
        return _URL_COST
    # A counted repetition may stand for any size, other groups are as long as written.
    return _URL_GROUP_COST if "{" in pattern else _URL_COST + 200 * len(pattern)


def _failed_cost(problem: str) -> int:
    if "regexp error" in problem:
        return _URL_GROUP_COST
    return _FAILED_PATTERN_COST if "too large" in problem else _GLOB_COST
