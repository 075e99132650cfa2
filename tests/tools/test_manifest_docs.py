"""Every key of a manifest has a line, with a description and a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from tools import manifest_docs


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["manifest_docs.py", *arguments])
    return manifest_docs.main()


@pytest.mark.parametrize("key", manifest_docs.all_keys(), ids=lambda key: key.path)
def test_every_key_has_a_line_in_the_docs(key: manifest_docs.Key) -> None:
    page = manifest_docs.PAGE.read_text(encoding="utf-8")
    table = page.partition(f"[{key.table}]" if key.table else "outside every table")[2]
    assert f"\n| `{key.path}` | {key.type} | {key.default} |" in table
    assert key.about


def test_keys_of_plugins_name_the_plugin() -> None:
    readers = {key.path: key.reader for key in manifest_docs.all_keys()}
    assert readers["resources.max_tool_calls_per_minute"] == "plugin:toolbox"
    assert readers["resources.max_cost_per_day_usd"] == "plugin:models"
    assert readers["name"] == "agenthost"


def test_a_stale_page_fails_the_check_and_is_mended_by_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "manifest.md"
    monkeypatch.setattr(manifest_docs, "PAGE", page)
    assert run(["--check"], monkeypatch) == 1
    assert "stale" in capsys.readouterr().out
    assert run([], monkeypatch) == 0
    assert run(["--check"], monkeypatch) == 0
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert run(["--check"], monkeypatch) == 1


MARKED = """
@pytest.mark.manifest("name", "version")
async def test_a():
    pass

@pytest.mark.manifest("name")
def test_b():
    pass
"""


def test_the_first_test_that_is_marked_with_a_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "test_keys.py").write_text(MARKED, encoding="utf-8")
    shown = "test_keys.py::test_a"
    assert manifest_docs.effects(tmp_path) == {"name": shown, "version": shown}


@pytest.mark.parametrize(
    ("gone", "more", "said"),
    [
        ("model.temperature", "", "model.temperature: mark a test of its effect"),
        ("", "acme.key", "test_x: there is no key acme.key"),
    ],
)
def test_a_key_without_a_test_and_a_test_without_a_key_stop_it(
    monkeypatch: pytest.MonkeyPatch, gone: str, more: str, said: str
) -> None:
    tests = manifest_docs.effects(manifest_docs.TESTS) | (
        {more: "test_x"} if more else {}
    )
    tests.pop(gone, None)
    monkeypatch.setattr(manifest_docs, "effects", lambda _: tests)
    with pytest.raises(LookupError, match=said):
        manifest_docs.page()


def test_a_key_without_a_description_stops_it() -> None:
    class Mute(BaseModel):
        key: int = 1

    with pytest.raises(LookupError, match=r"mute\.key needs a description"):
        manifest_docs.keys_of("mute", Mute, "plugin:mute")
