"""Section 7 of the semantics: what the shell may run and open, and how."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost_desktop_shell.terms import Caller, Mode, ShellCall
from agenthost_desktop_shell.validators import compile_validator

from .building import LINUX, MAIN, capability, granting, policy, run, shell_policy

DIGITS = {"validator": r"\d+"}

RUNS: list[tuple[Any, Any, list[str]]] = [
    (True, ["a", "b"], ["a", "b"]),
    (True, "a b", ["a b"]),
    (True, [], []),
    (False, [], []),
    (None, [], []),
    ([], [], []),
    (["-n", "hi"], [], ["-n", "hi"]),
    (["-n", "hi"], ["-n", "hi"], ["-n", "hi"]),
    (["-n", "hi"], ["-n"], ["-n", "hi"]),
    (["-n", DIGITS], ["-n", "12"], ["-n", "12"]),
    (["-n", DIGITS], ["-n", "٣"], ["-n", "٣"]),
    ([{"validator": r"\d", "raw": True}], ["x1y"], ["x1y"]),
    ([{"validator": r"\w+"}], ["é"], ["é"]),
    ([{"validator": "aa|bb"}], ["bb"], ["bb"]),
    ([{"validator": r"(?i)AB"}], ["ab"], ["ab"]),
    ([{"validator": r"[\w\s]+"}], ["é a"], ["é a"]),
    ([{"validator": r"[^\s]+"}], ["a-b"], ["a-b"]),
    ([{"validator": r"[\S]+"}], ["a-b"], ["a-b"]),
    (["", DIGITS], ["", "1"], ["", "1"]),
]
REFUSALS: list[tuple[Any, Any, str]] = [
    (False, ["a"], "argument 1 'a' is one too many: the scope allows 0"),
    (None, ["a"], "argument 1"),
    ([], ["a"], "argument 1"),
    (["-n", "hi"], ["x", "y"], "argument 1 must be '-n'"),
    (["-n", "hi"], ["-n", "hi", "extra"], "argument 3 'extra' is one too many"),
    (["-n", "hi"], "x", "takes its arguments as an array"),
    (["-n", DIGITS], ["q", "12"], "argument 1 must be '-n'"),
    (["-n", DIGITS], ["-n", "12x"], "argument 2 '12x' does not match"),
    (["-n", DIGITS], ["-n"], "argument 2 is missing"),
    (["-n", DIGITS], [], "argument 2 is missing"),
    ([{"validator": "aa|bb"}], ["aaZZ"], "argument 1"),
    ([{"validator": "aa|bb"}], ["ZZbb"], "argument 1"),
    ([{"validator": r"\w+"}], ["a\n"], "argument 1"),
    ([{"validator": r"\w+"}], ["a\nb"], "argument 1"),
    ([{"validator": r"(?m)a"}], ["a\nb"], "argument 1"),
    (True, ["a\0b"], "argument 1 is not text that a program can take"),
    (True, ["\ud800"], "argument 1 is not text that a program can take"),
]


def _entry(args: Any) -> dict[str, Any]:
    entry = {"name": "x", "cmd": "prog", "args": args}
    return {key: value for key, value in entry.items() if value is not None}


@pytest.mark.parametrize(("args", "given", "argv"), RUNS)
def test_these_arguments_run(args: Any, given: Any, argv: list[str]) -> None:
    decision = run(shell_policy(_entry(args)), "x", given)
    assert decision.argv == ("prog", *argv), decision.reason


@pytest.mark.parametrize(("args", "given", "reason"), REFUSALS)
def test_these_arguments_are_refused_by_position(
    args: Any, given: Any, reason: str
) -> None:
    decision = run(shell_policy(_entry(args)), "x", given)
    assert not decision.allowed
    assert decision.argv is None
    assert reason in decision.reason


def test_arguments_of_a_wrong_type_fail_when_they_are_used() -> None:
    scope = {"identifier": "shell:allow-execute", "allow": [_entry(5)]}
    grants = policy(capability(permissions=[scope]), mode=Mode.LENIENT)
    assert "cannot be used: 'args' is neither" in run(grants, "x").reason


@pytest.mark.parametrize("name", ["y", "prog", "/usr/bin/prog", ""])
def test_only_names_of_the_scope_run(name: str) -> None:
    assert (
        "no scope of shell:execute has the name"
        in run(shell_policy(_entry(True)), name).reason
    )


def test_the_first_of_two_entries_with_one_name_wins() -> None:
    grants = shell_policy(_entry(["one"]), _entry(["two"]))
    assert run(grants, "x").argv == ("prog", "one")


def test_a_deny_entry_refuses_the_name() -> None:
    scope = {"identifier": "shell:allow-execute", "allow": [_entry(True)]}
    denying = {"identifier": "shell:allow-execute", "deny": [_entry(None)]}
    assert "denies 'x'" in run(granting({**scope, **denying}), "x").reason
    elsewhere = capability(identifier="b", windows=["other"], permissions=[denying])
    both = policy(capability(permissions=[scope]), elsewhere)
    assert not run(both, "x").allowed


def test_a_sidecar_runs_only_as_one_and_a_command_only_as_one() -> None:
    grants = shell_policy(_entry(True), {"name": "side", "sidecar": True})
    assert run(grants, "side", sidecar=True).argv == ("side",)
    assert "is a sidecar" in run(grants, "side").reason
    assert "is no sidecar" in run(grants, "x", sidecar=True).reason


def test_a_scope_of_spawn_does_not_help_execute() -> None:
    scope = {"identifier": "shell:allow-spawn", "allow": [_entry(True)]}
    grants = granting(scope, "shell:allow-execute")
    assert run(grants, "x", command="shell:spawn").allowed
    assert not run(grants, "x").allowed


def test_scopes_of_two_entries_of_one_permission_unite() -> None:
    scope = {"identifier": "shell:allow-execute", "allow": [_entry(True)]}
    more = {**scope, "allow": [{"name": "y", "cmd": "other"}]}
    grants = granting(scope, more)
    assert run(grants, "x").allowed
    assert run(grants, "y").argv == ("other",)


def test_a_scope_for_another_window_does_not_help() -> None:
    scope = {"identifier": "shell:allow-execute", "allow": [_entry(True)]}
    grants = policy(
        capability(permissions=["shell:allow-execute"]),
        capability(identifier="b", windows=["other"], permissions=[scope]),
    )
    assert not run(grants, "x").allowed
    assert grants.decide_shell(ShellCall("x"), Caller("other"), LINUX).allowed


def test_without_the_command_permission_no_scope_helps() -> None:
    scope = {"identifier": "shell:allow-execute", "allow": [_entry(True)]}
    assert "denied by" in run(granting(scope, "shell:deny-execute"), "x").reason
    assert "no capability grants" in run(granting("shell:default"), "x").reason


def test_other_commands_run_no_program() -> None:
    grants = granting("shell:allow-kill")
    assert "runs no program" in run(grants, "x", command="shell:kill").reason


@pytest.mark.parametrize(
    ("link", "opens"),
    [
        ("https://a.dev", True),
        ("http://a.dev/x?y", True),
        ("mailto:me@a.dev", True),
        ("tel:123", True),
        ("https://über.example", True),
        ("file:///etc/passwd", False),
        ("ftp://a.dev", False),
        ("HTTPS://a.dev", False),
        ("https://", False),
        ("tel:+1", False),
        ("/bin/sh", False),
        ("", False),
        (" https://a.dev", False),
        ("https://a.dev\n--flag", False),
        ("https://a.dev/\ud800", False),
    ],
)
def test_open_takes_web_phone_and_mail_links_only(link: str, opens: bool) -> None:
    decision = granting("shell:default").decide_open(link, MAIN, "linux")
    assert decision.allowed is opens
    assert decision.argv == ((link,) if opens else None)


def test_open_needs_its_permission() -> None:
    grants = granting("shell:allow-execute")
    assert not grants.decide_open("https://a.dev", MAIN, "linux").allowed


@pytest.mark.parametrize(
    "source",
    [
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?>a)",
        r"(a)\1",
        r"\k<n>",
        r"\Ca",
        r"\Qa\E",
        r"\Z",
        r"\012",
        "[a&&b]",
        "[a--b]",
        "[a[b]]",
        r"[\W]",
        "[a",
        "(a",
        "a)",
        "*",
        "a{1001}",
        "x" * 1001,
        r"\w{1000}",
        "(?x) a",
    ],
)
def test_what_the_engines_read_differently_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        compile_validator(source)


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        (r"\s", "\u2003", True),
        (r"\S", "\u2003", False),
        (r"\W", "é", False),
        (r"\W", "-", True),
        (r"\D", "٣", False),
        (r"[\D]", "٣", False),
        (r"[]a]", "]", True),
        (r"[^]a]", "]", False),
        (r"[[:alpha:]]", "x", True),
        (r"[\[\]]", "[", True),
        (r"\x{e9}", "é", True),
        (r"\p{Greek}", "α", True),
        (r".", "\n", False),
        (r"(?s).", "\n", True),
        (r"(?P<n>a)", "a", True),
        (r"\.", "a", False),
    ],
)
def test_expressions_mean_what_rust_means(
    source: str, text: str, expected: bool
) -> None:
    assert bool(compile_validator(source).search(text)) is expected


@pytest.mark.parametrize("of", ["spawn", "open", "kill", "stdin-write"])
def test_a_deny_of_one_shell_permission_refuses_the_name_to_all(of: str) -> None:
    entry = {"name": "git", "cmd": "git", "args": True}
    grants = granting(
        {"identifier": "shell:allow-execute", "allow": [entry]},
        {"identifier": f"shell:allow-{of}", "deny": [entry]},
    )
    decision = run(grants, "git")
    assert not decision.allowed
    assert "a scope of the shell denies 'git'" in decision.reason
