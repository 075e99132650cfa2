"""Modules of the kernel form no circle, imports for type checkers included."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest


def imports(package: str, without: str = "") -> Mapping[str, set[str]]:
    graph = grimp.build_graph(package, cache_dir=None)
    modules = {m for m in graph.modules if not without or not m.startswith(without)}
    return {m: graph.find_modules_directly_imported_by(m) & modules for m in modules}


def circle(graph: Mapping[str, set[str]]) -> Sequence[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: Sequence[str] = error.args[1]
        return found
    return ()


def test_the_kernel_has_no_circle() -> None:
    graph = imports("agenthost", without="agenthost.testing")
    assert graph["agenthost.daemon"] > {"agenthost.clock"}
    assert not circle(graph)


def test_a_circle_for_type_checkers_alone_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = tmp_path / "round_house"
    house.mkdir()
    (house / "__init__.py").write_text("")
    (house / "one.py").write_text("from . import two\n")
    late = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import one\n"
    )
    (house / "two.py").write_text(late)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert set(circle(imports("round_house"))) == {"round_house.one", "round_house.two"}
