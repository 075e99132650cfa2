"""The tree of paths, compared with werkzeug's."""

from __future__ import annotations

import pytest
from agenthost import PluginError
from agenthost_front.paths import PathTree, parse
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

ROUTES = [
    "/",
    "/a",
    "/a/b",
    "/a/<x>",
    "/a/<x>/b",
    "/a/b/<x>",
    "/<x>/b",
    "/b/<path:x>",
    "/b/c",
]


def tree() -> PathTree[str]:
    made: PathTree[str] = PathTree()
    for route in ROUTES:
        made.add("GET", parse(route), route)
    return made


@given(st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=5))
def test_it_finds_what_werkzeug_finds(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    rules = [Rule(route, endpoint=route, strict_slashes=True) for route in ROUTES]
    adapter = Map(rules, merge_slashes=False).bind("localhost")
    try:
        endpoint, values = adapter.match(path)
        expected = (endpoint, list(values.values()))
    except HTTPException:
        expected = None
    if path.startswith("//"):
        # werkzeug drops doubled slashes at the front; we do not.
        expected = None
    if path.startswith("/b//"):
        # The rest of a path may begin with a slash, as the keys of a memory do.
        expected = ("/b/<path:x>", [path.removeprefix("/b/")])
    assert tree().find("GET", path) == expected


def test_another_method_is_not_found() -> None:
    assert tree().find("POST", "/a") is None


@pytest.mark.parametrize(
    "path", ["a", "/a<x>", "/<x>/<x>", "/<path:x>/a", "/<uuid:x>", "/{a}"]
)
def test_a_path_that_means_nothing_is_refused(path: str) -> None:
    with pytest.raises(PluginError, match="the path"):
        parse(path)


def test_a_path_is_written_for_others() -> None:
    template = parse("/a/<x>/<y>/<path:z>")
    assert template.names == ("x", "y", "z")
    assert template.openapi == "/a/{x}/{y}/{z}"
