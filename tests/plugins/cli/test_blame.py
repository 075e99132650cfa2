"""The plugin of a stack is that of its innermost frame that belongs to one."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from agenthost import Plugins
from agenthost_cli.blame import (
    files_of,
    frames_of,
    frames_of_traceback,
    owner,
    places_of,
    shown,
)

PLACES = {
    "/site/acme/": "plugin:acme",
    "/site/acme/deep/": "tool:deep",
    "/site/wild.py": "plugin:wild",
}


@pytest.mark.parametrize(
    ("files", "plugin"),
    [
        (["/site/wild.py", "/site/acme/x.py"], "plugin:wild"),
        (["/usr/lib/json.py", "/site/acme/x.py"], "plugin:acme"),
        (["/site/acme/deep/x.py"], "tool:deep"),
        (["/site/wild.pyx", "/site/acme.py"], None),
        ([], None),
    ],
)
def test_the_innermost_file_of_a_plugin_names_it(
    files: list[str], plugin: str | None
) -> None:
    assert owner(PLACES, files) == plugin


def loaded(monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    for name, file in files.items():
        module = ModuleType(name.replace("__", "."))
        module.__file__ = file
        monkeypatch.setitem(sys.modules, module.__name__, module)


def plugins_of(*states: tuple[str, str, bool]) -> Plugins:
    rows = [
        SimpleNamespace(
            key=key, entry=SimpleNamespace(module=module), first_party=first_party
        )
        for key, module, first_party in states
    ]
    return cast("Plugins", SimpleNamespace(states=lambda: cast("Any", rows)))


def test_a_package_of_others_is_theirs_as_a_whole_and_ours_by_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded(
        monkeypatch,
        acme="/site/acme/__init__.py",
        acme__hooks="/site/acme/hooks.py",
        ours="/site/ours/__init__.py",
        ours__files="/site/ours/files.py",
        ours__web="/site/ours/web/__init__.py",
        cli="/site/cli/__init__.py",
        two="/site/two/__init__.py",
        two__a="/site/two/a.py",
        two__b="/site/two/b.py",
    )
    plugins = plugins_of(
        ("plugin:acme", "acme.hooks", False),
        ("tool:files", "ours.files", True),
        ("tool:web", "ours.web", True),
        ("tool:none", "not_imported", True),
        ("plugin:cli", "cli", True),
        ("plugin:a", "two.a", False),
        ("plugin:b", "two.b", False),
    )
    assert places_of(plugins) == {
        "/site/acme/": "plugin:acme",
        "/site/acme/hooks.py": "plugin:acme",
        "/site/ours/files.py": "tool:files",
        "/site/ours/web/": "tool:web",
        "/site/two/a.py": "plugin:a",
        "/site/two/b.py": "plugin:b",
    }


def test_a_frame_is_shown_without_a_path() -> None:
    frames = frames_of(sys._getframe())
    assert files_of(frames)[0] == __file__
    assert shown(frames[0]).startswith(f"{__name__}.test_a_frame_is_shown")
    assert "/" not in shown(frames[0])


def test_the_innermost_frame_of_an_exception_comes_first() -> None:
    def deep() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        deep()
    names = [f.f_code.co_name for f in frames_of_traceback(caught.value.__traceback__)]
    assert names[0] == "deep"
