"""Every key of the configuration is documented, and tested under its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from agenthost_toml.types import Positive, Table
from pydantic import BaseModel, Field

from tools import config_docs


class Oven(Table):
    """What is warm."""

    degrees: Positive = Field(180, description="How warm.")
    fan: bool = False


class Silent(Table):
    """Says too little."""

    degrees: Positive = 180
    """How warm, said
    below."""
    ovens: tuple[Oven, ...] = ()
    by_name: dict[str, Oven] = Field(default_factory=dict, description="More.")


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["config_docs.py", *arguments])
    return config_docs.main()


def test_the_page_of_the_repository_is_fresh_and_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--check"], monkeypatch) == 0, capsys.readouterr().out


def test_keys_of_tables_in_tables_are_listed_with_their_descriptions() -> None:
    keys = {key.name: key for key in config_docs.keys_of(Silent, "x")}
    assert list(keys) == [
        "x.degrees",
        "x.ovens",
        "x.ovens[].degrees",
        "x.ovens[].fan",
        "x.by_name",
        "x.by_name.<name>.degrees",
        "x.by_name.<name>.fan",
    ]
    assert keys["x.degrees"].description == "How warm, said below."
    assert keys["x.degrees"].variable == "`AGENTHOST_X__DEGREES`"
    assert keys["x.ovens[].degrees"].variable == ""
    assert keys["x.by_name.<name>.degrees"].type == "whole number from 1"
    assert keys["x.by_name.<name>.degrees"].default == "`180`"


def test_a_key_without_description_or_test_is_an_offence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def sections() -> Iterator[tuple[str, str, type[BaseModel]]]:
        yield "oven", "`plugin:bakery`", Oven

    monkeypatch.setattr(config_docs, "sections", sections)
    shown = {"oven.fan": "`test_a.py::test_it`", "oven.fam": "`test_b.py::test_it`"}
    assert list(config_docs.lacks(shown)) == [
        "oven.degrees: mark a test of its effect with pytest.mark.setting",
        "oven.fan: describe it in its model",
        "`test_b.py::test_it`: there is no key oven.fam",
    ]


def test_tests_are_found_by_their_marks(tmp_path: Path) -> None:
    (tmp_path / "test_ovens.py").write_text(
        '@pytest.mark.setting("oven.fan", "oven.degrees")\n'
        "async def test_it_is_warm() -> None: ...\n"
        "def test_something_else() -> None: ...\n",
        encoding="utf-8",
    )
    found = config_docs.effects(tmp_path)
    assert found == dict.fromkeys(
        ("oven.fan", "oven.degrees"), "`test_ovens.py::test_it_is_warm`"
    )


@pytest.mark.conformance
def test_a_stale_page_fails_the_check_and_is_mended_by_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "configuration.md"
    monkeypatch.setattr(config_docs, "PAGE", page)
    assert run(["--check"], monkeypatch) == 1
    assert "stale" in capsys.readouterr().out
    assert run([], monkeypatch) == 0
    assert run(["--check"], monkeypatch) == 0
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert run(["--check"], monkeypatch) == 1
