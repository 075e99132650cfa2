"""The check of change fragments names what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_changes import offences


def test_a_well_formed_fragment_passes(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Changes\n", encoding="utf-8")
    fragment = tmp_path / "provider-groq.added.md"
    fragment.write_text("Groq is a provider.\n", encoding="utf-8")
    assert list(offences(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("groq.md", "Groq is a provider.", "name it"),
        ("groq.new.md", "Groq is a provider.", "name it"),
        ("Groq.added.md", "Groq is a provider.", "name it"),
        ("groq.added.txt", "Groq is a provider.", "name it"),
        ("groq.added.md", " \n", "say in a sentence"),
        ("groq.added.md", "Groq is a provider", "full stop"),
        ("groq.added.md", "- Groq is a provider.", "no list"),
        ("groq.added.md", "Groq " * 20 + "is a provider.", "break lines"),
    ],
)
def test_a_malformed_fragment_is_named(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    (offender,) = offences(tmp_path)
    assert offender.startswith(name)
    assert problem in offender
