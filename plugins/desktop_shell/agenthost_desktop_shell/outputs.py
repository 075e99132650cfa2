"""What was found, as people, programs and forges read it: text, JSON, GitHub, SARIF."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import PurePath
from urllib.parse import quote

from .findings import Finding, Json
from .rules import RULES

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
INVALID = "invalid"


def severity(finding: Finding) -> str:
    """How grave a finding is: ``error``, ``warning`` or ``note``."""
    return RULES[finding.rule or INVALID].severity


def text(findings: Sequence[Finding]) -> str:
    """One line a finding: where, what, and the rule that can be ignored."""
    return "\n".join(map(_line, findings))


def as_json(findings: Sequence[Finding]) -> str:
    """A list of objects."""
    return json.dumps(list(map(shown, findings)), indent=2, ensure_ascii=False)


def shown(finding: Finding) -> dict[str, Json]:
    """A finding with the rule that found it, and how grave that is."""
    rule = finding.rule or INVALID
    return {**finding.as_json(), "rule": rule, "severity": severity(finding)}


def github(findings: Sequence[Finding]) -> str:
    """Workflow commands, which GitHub shows beside the lines of a change."""
    return "\n".join(map(_command, findings))


def sarif(findings: Sequence[Finding]) -> str:
    """SARIF 2.1.0, which code scanning takes."""
    driver = {
        "name": "agenthost-capability",
        "rules": [
            {
                "id": name,
                "shortDescription": {"text": rule.problem},
                "help": {"text": rule.remedy or rule.problem},
                "defaultConfiguration": {"level": rule.severity},
            }
            for name, rule in RULES.items()
        ],
    }
    run = {"tool": {"driver": driver}, "results": list(map(_result, findings))}
    return json.dumps(
        {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]},
        indent=2,
        ensure_ascii=False,
    )


FORMATS: dict[str, Callable[[Sequence[Finding]], str]] = {
    "text": text,
    "json": as_json,
    "github": github,
    "sarif": sarif,
}


def _line(finding: Finding) -> str:
    mark = f" [{finding.rule}]" if finding.rule else ""
    grade = "" if severity(finding) == "error" else f"{severity(finding)}: "
    return f"{grade}{finding}{mark}"


def _command(finding: Finding) -> str:
    kind = {"note": "notice"}.get(severity(finding), severity(finding))
    places = {"file": finding.file, "line": finding.line, "title": finding.rule}
    shown = ",".join(f"{key}={_property(v)}" for key, v in places.items() if v)
    return f"::{kind} {shown}::{_data(_message(finding))}"


def _message(finding: Finding) -> str:
    owner = f"capability {finding.capability!r}: " if finding.capability else ""
    return owner + finding.message


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")


def _result(finding: Finding) -> Json:
    result: dict[str, Json] = {
        "ruleId": finding.rule or INVALID,
        "level": severity(finding),
        "message": {"text": _message(finding)},
    }
    if finding.file:
        place: dict[str, Json] = {
            "artifactLocation": {"uri": quote(PurePath(finding.file).as_posix())},
        }
        if finding.line:
            place["region"] = {"startLine": finding.line}
        result["locations"] = [{"physicalLocation": place}]
    return result
