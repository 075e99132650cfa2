"""The lints: what each is called, how grave it is, and what to do about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "note"]


class Rule(NamedTuple):
    """A lint: ``problem`` is its short description."""

    severity: Severity
    problem: str
    remedy: str


RULES = {
    "invalid": Rule("error", "The file is not valid.", ""),
    "strict-only": Rule("note", "Only strict validation refuses this.", ""),
    "other-platform": Rule(
        "note", "A permission of another platform is not known here.", ""
    ),
    "unknown-field": Rule(
        "warning", "A field means nothing.", "write the field's name or take it out"
    ),
    "grants-nothing": Rule(
        "warning",
        "The capability grants nothing to anybody.",
        "give it windows or webviews, an origin and a platform",
    ),
    "braces-in-label": Rule(
        "warning", "Braces in a label are ordinary characters.", "list the labels"
    ),
    "no-such-window": Rule(
        "warning",
        "A label matches no window of the application.",
        "write the label of a window, or name it where the window is made",
    ),
    "deny-elsewhere": Rule(
        "warning",
        "A denial for one window takes the command from all.",
        "take the allowing permission out instead of denying it",
    ),
    "idle-scope": Rule(
        "warning",
        "The scope is of a permission that runs no program.",
        "move the scope to shell:allow-execute or shell:allow-spawn",
    ),
    "other-command": Rule(
        "warning",
        "A program is in the scope of one command and another is called without one.",
        "give both commands the scope",
    ),
    "no-scope": Rule(
        "warning",
        "The permission runs programs and has no scope, so that it runs none.",
        "list the programs in 'allow'",
    ),
    "literal-path": Rule(
        "warning",
        "The path is taken as it is written, for nothing in it is replaced.",
        "begin with a base folder such as $HOME/ and leave '..' out",
    ),
    "empty-program": Rule("warning", "The program has no name.", "name it in 'cmd'"),
    "open-interpreter": Rule(
        "warning",
        "An interpreter with free arguments runs anything.",
        "list the arguments, with validators that match them wholly",
    ),
    "wide-remote": Rule(
        "warning",
        "Pages of anybody, or sent in the clear, may use the permissions.",
        "name the host, with https",
    ),
    "command-not-listed": Rule(
        "warning",
        "A command of the application has no permission, so that it is refused.",
        "add it to the commands of build.rs or to permissions/*.toml",
    ),
    "command-stale": Rule(
        "note",
        "A permission is about a command that no handler has.",
        "take it out of the application's permissions",
    ),
    "loopback-page": Rule(
        "warning",
        "A page served from a loopback address is a remote page.",
        "bundle it, or grant what it needs in a capability with 'remote'",
    ),
    "not-selected": Rule(
        "note",
        "The configuration selects capabilities and leaves this one out.",
        "add its identifier to app.security.capabilities or delete it",
    ),
}
