"""Quart code of plugins: Blueprints as they are, and what they add to the application.

Quart's own map finds these routes, here for cost, limits and access and in Quart for
the view, so that both always speak of the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agenthost import Mountable, PluginError, Route
from quart import Blueprint, Quart
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect, Rule

from .dispatch import Endpoint
from .paths import Segment, Template

OTHERS = "quart"
"""The group of routes that a plugin added to the application itself."""
_PARAMETER = re.compile(r"<(?:(\w+)(?:\([^)]*\))?:)?(\w+)>")
_BY_ITSELF = frozenset({"HEAD", "OPTIONS"})
_READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Foreign:
    """The routes of an application that no route group brought.

    Args:
        app: The application.
    """

    def __init__(self, app: Quart) -> None:
        self._app = app
        self._found: dict[tuple[str, str], Endpoint] = {}

    def find(self, method: str, path: str) -> Endpoint | None:
        """Find the route that Quart will serve; None when it is none of these."""
        adapter = self._app.url_map.bind("", url_scheme="http")
        try:
            rule, _ = adapter.match(path, method, return_rule=True)
        except (HTTPException, RequestRedirect):
            return None
        return self._endpoint(rule, method)

    def _endpoint(self, rule: Rule, method: str) -> Endpoint:
        place = (rule.endpoint, method)
        if place not in self._found:
            self._found[place] = endpoint_of(rule, method, self._view(rule))
        return self._found[place]

    def _view(self, rule: Rule) -> Any:
        return self._app.view_functions[rule.endpoint]


def endpoint_of(rule: Rule, method: str, view: Any) -> Endpoint:
    """Make the route of a rule; its scope is named after its blueprint."""
    group = group_of(rule)
    scope = f"{group}:{'read' if method in _READS else 'write'}"
    route = Route(method, rule.rule, view, scope)
    return Endpoint(
        group,
        route,
        template(rule),
        (),
        takes_query=False,
        quart_name=str(rule.endpoint),
    )


def group_of(rule: Rule) -> str:
    """The blueprint that brought a rule."""
    return str(rule.endpoint).rpartition(".")[0] or OTHERS


def template(rule: Rule) -> Template:
    """Read a rule of Quart's; a segment that is a parameter in part is a word."""
    return Template(tuple(_segment(text) for text in rule.rule[1:].split("/")))


def _segment(text: str) -> Segment:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        return Segment(_PARAMETER.sub(r"{\2}", text))
    return Segment(match[2], parameter=True, rest=match[1] == "path")


def as_blueprint(group: Mountable) -> Blueprint:
    """Take what a plugin offers for a blueprint.

    Raises:
        PluginError: It is neither a route group nor a blueprint.
    """
    if isinstance(group, Blueprint):
        return group
    raise PluginError(
        f"register_routes offers {type(group).__name__}; it must offer RouteGroup or a "
        "Quart Blueprint"
    )


def rules_of(blueprint: Blueprint) -> Iterator[Endpoint]:
    """Give the routes of a blueprint before it is registered for good.

    Raises:
        PluginError: It cannot be registered, or has a WebSocket.
    """
    # What is registered cannot be taken back, so another application tries it.
    probe = Quart("probe", static_folder=None)
    try:
        probe.register_blueprint(blueprint)
    except Exception as error:
        raise PluginError(f"blueprint {blueprint.name!r}: {error}") from error
    for rule in probe.url_map.iter_rules():
        if rule.websocket:
            raise PluginError(
                f"blueprint {blueprint.name!r}: the WebSocket {rule.rule} is not "
                "served; offer it by RouteGroup.socket"
            )
        for method in sorted((rule.methods or set()) - _BY_ITSELF):
            yield endpoint_of(rule, method, probe.view_functions[rule.endpoint])
