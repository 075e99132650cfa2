"""The table of providers says what is in the facts, and nothing without a test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance.test_aimock import SERVICES
from tests.plugins.providers.test_catalogue import TWENTY
from tools import provider_docs


def run(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["provider_docs.py", *arguments])
    return provider_docs.main()


def test_every_provider_has_a_row_and_nobody_else() -> None:
    rows = provider_docs.page().splitlines()
    named = [row.split("`")[1] for row in rows if row.startswith("| `")]
    assert named == sorted(TWENTY)


def test_the_services_of_aimock_are_those_it_is_marked_to_judge() -> None:
    judged = provider_docs.judges().items()
    marked = {slug for slug, files in judged if provider_docs.OUTSIDE in files}
    assert marked == {service.slug for service in SERVICES}


def test_a_stale_page_fails_the_check_and_is_mended_by_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(provider_docs, "PAGE", tmp_path / "supported.md")
    assert run(["--check"], monkeypatch) == 1
    assert "stale" in capsys.readouterr().out
    assert run([], monkeypatch) == 0
    assert run(["--check"], monkeypatch) == 0


def test_a_claim_without_its_test_fails_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = "plugins/providers/test_catalogue.py"
    monkeypatch.setitem(provider_docs.SHOWN, "Tools", (place, "test_nothing"))
    monkeypatch.setattr(provider_docs, "exemptions", lambda: dict.fromkeys(TWENTY[1:]))
    monkeypatch.setattr(provider_docs, "judges", lambda: {"grok": ["test_x.py"]})
    lacks = list(provider_docs.lacks())
    assert [lack.partition(":")[0] for lack in lacks] == ["anthropic", "grok", "Tools"]


def test_a_provider_that_nobody_outside_judges_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider_docs, "judges", dict)
    rows = [row for row in provider_docs.page().splitlines() if row.startswith("| `")]
    assert all("contract only" in row for row in rows)
