"""Paths with parameters: how a route writes them, and the tree that finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from agenthost import PluginError
from agenthost_values.value_class import value_class

T = TypeVar("T")

_MARKS = frozenset("<>{}")
_PARAMETER = re.compile(r"<(path:)?(\w+)>")


@value_class
class Segment:
    """One piece of a path between slashes: a word, or a parameter's name."""

    text: str
    parameter: bool = False
    rest: bool = False


@value_class
class Template:
    """A parsed path."""

    segments: tuple[Segment, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return tuple(s.text for s in self.segments if s.parameter)

    @property
    def openapi(self) -> str:
        """The path as OpenAPI writes it: ``/api/agents/{agent_id}``."""
        return "/" + "/".join(
            f"{{{s.text}}}" if s.parameter else s.text for s in self.segments
        )

    @property
    def shape(self) -> str:
        """The path without its names: two routes of one shape collide."""
        return "/".join(
            ("<path>" if s.rest else "<>") if s.parameter else s.text
            for s in self.segments
        )


def parse(path: str) -> Template:
    """Read a route's path: ``/api/agents/<agent_id>``, ``/files/<path:name>``.

    Raises:
        PluginError: It does not begin with a slash, has a segment that is neither a
            word nor a parameter, or goes on after ``<path:...>``.
    """
    if not path.startswith("/"):
        raise PluginError(f"the path {path!r} must begin with a slash")
    template = Template(tuple(_segment(path, s) for s in path[1:].split("/")))
    if any(s.rest for s in template.segments[:-1]):
        raise PluginError(f"the path {path!r} goes on after <path:...>")
    if len(set(template.names)) != len(template.names):
        raise PluginError(f"the path {path!r} names a parameter twice")
    return template


def _segment(path: str, text: str) -> Segment:
    if _MARKS.isdisjoint(text):
        return Segment(text)
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise PluginError(
            f"the path {path!r} has {text!r}; a parameter is <name> or <path:name>"
        )
    return Segment(match[2], parameter=True, rest=match[1] is not None)


@dataclass(slots=True)
class _Node(Generic[T]):
    fixed: dict[str, _Node[T]] = field(default_factory=dict)
    any: _Node[T] | None = None
    rest: dict[str, T] = field(default_factory=dict)
    here: dict[str, T] = field(default_factory=dict)


class PathTree(Generic[T]):
    """Things by method and path; a word is preferred to a parameter.

    Attributes:
        methods: All that anything was put in for.
    """

    def __init__(self) -> None:
        self.methods: set[str] = set()
        self._root: _Node[T] = _Node()
        self._whole: dict[tuple[str, str], T] = {}

    def add(self, method: str, template: Template, thing: T) -> None:
        """Put a thing in, at a place that is free."""
        node = self._root
        table = node.here
        for segment in template.segments:
            if segment.rest:
                table = node.rest
                break
            node = self._child(node, segment)
            table = node.here
        table[method] = thing
        self.methods.add(method)
        if not template.names:
            self._whole[method, template.openapi] = thing

    def find(self, method: str, path: str) -> tuple[T, list[str]] | None:
        """Find a thing and the values of its parameters, in order."""
        whole = self._whole.get((method, path))
        if whole is not None:
            return whole, []
        segments = path[1:].split("/")
        return next(self._matches(self._root, method, segments, 0), None)

    @staticmethod
    def _child(node: _Node[T], segment: Segment) -> _Node[T]:
        if not segment.parameter:
            return node.fixed.setdefault(segment.text, _Node())
        if node.any is None:
            node.any = _Node()
        return node.any

    def _matches(
        self, node: _Node[T], method: str, segments: list[str], at: int
    ) -> Iterator[tuple[T, list[str]]]:
        if at == len(segments):
            if method in node.here:
                yield node.here[method], []
            return
        text = segments[at]
        if text in node.fixed:
            yield from self._matches(node.fixed[text], method, segments, at + 1)
        if node.any is not None and text:
            for thing, values in self._matches(node.any, method, segments, at + 1):
                yield thing, [text, *values]
        rest = "/".join(segments[at:])
        if method in node.rest and rest:
            yield node.rest[method], [rest]
