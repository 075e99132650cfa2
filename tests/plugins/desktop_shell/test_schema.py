"""The generated JSON Schema, judged by jsonschema, against our own validation."""

from __future__ import annotations

from typing import Any

import pytest
from agenthost_desktop_shell.schema import capability_schema
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from .building import problems, tables
from .test_form_facts import INVALID, SHELL_ENTRIES, VALID

SCHEMA = capability_schema(tables())
JUDGE = Draft7Validator(SCHEMA)
# What no JSON Schema can say: patterns that must compile, names that must be unique.
BEYOND = ("not a url (", "'**' must", "never closed", "already exists")


def test_the_schema_is_draft_07_and_has_its_title() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert SCHEMA["title"] == "CapabilityFile"


def test_every_permission_says_what_it_means() -> None:
    shown = SCHEMA["definitions"]["Identifier"]["anyOf"]
    texts = {each["const"]: each["description"] for each in shown}
    assert texts.keys() == tables().identifiers
    assert all(texts.values())
    assert texts["shell:default"] == "Allows shell:open."
    assert texts["core:window:deny-close"] == "Denies core:window:close."
    assert texts["core:default"].endswith(" and 76 more.")


@pytest.mark.parametrize("value", [value for _, value in VALID])
def test_the_schema_accepts_what_is_valid(value: Any) -> None:
    assert JUDGE.is_valid(value)


REFUSED = [
    *(v for v, _ in INVALID if not any(mark in str((v, _)) for mark in BEYOND)),
    *(v for _, v in SHELL_ENTRIES),
]


@pytest.mark.parametrize("value", REFUSED, ids=range(len(REFUSED)))
def test_the_schema_refuses_what_strict_refuses(value: Any) -> None:
    assert not JUDGE.is_valid(value)


JUNK = st.sampled_from(
    [None, True, 0, 1, 1.0, "x", "", [], {}, ["x"], [1], {"urls": 1}]
)
LABELS = st.lists(st.sampled_from(["main", "a-*", "b"]), max_size=2)
ARGUMENTS = (
    st.booleans()
    | st.lists(
        st.sampled_from(["-n", {"validator": "a"}, {"validator": "b", "raw": True}])
        | st.sampled_from(
            [{"validator": 1}, {"raw": True}, {"validator": "a", "x": 1}, 5]
        ),
        max_size=2,
    )
    | JUNK
)
SHELL_SCOPES = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("x") | JUNK,
        "cmd": st.just("x") | JUNK,
        "sidecar": st.just(value=True) | JUNK,
        "args": ARGUMENTS,
        "more": JUNK,
    },
)
ENTRIES = (
    st.sampled_from(
        ["core:default", "shell:allow-open", "dialog:deny-ask", "nope:x", "allow-x"]
    )
    | JUNK
    | st.fixed_dictionaries(
        {},
        optional={
            "identifier": st.sampled_from(["shell:allow-execute", "dialog:default", 1]),
            "allow": st.lists(SHELL_SCOPES | JUNK, max_size=2) | JUNK,
            "deny": st.lists(SHELL_SCOPES | JUNK, max_size=2) | JUNK,
        },
    )
)
CAPABILITIES = st.fixed_dictionaries(
    {},
    optional={
        "identifier": st.sampled_from(["a", "b", "c"]) | JUNK,
        "description": st.just("d") | JUNK,
        "local": st.booleans() | JUNK,
        "windows": LABELS | JUNK,
        "webviews": LABELS | JUNK,
        "remote": st.just({"urls": ["https://a.dev"]}) | JUNK,
        "platforms": st.lists(st.sampled_from(["linux", "iOS", "ios"]), max_size=2)
        | JUNK,
        "permissions": st.lists(ENTRIES, max_size=3) | JUNK,
        "extra": JUNK,
    },
)
SOUND = st.fixed_dictionaries(
    {
        "identifier": st.just("a"),
        "permissions": st.lists(ENTRIES, max_size=3),
    },
    optional={"windows": LABELS, "local": st.booleans()},
)
FILES = (
    CAPABILITIES
    | SOUND
    | st.lists(CAPABILITIES, max_size=2)
    | st.fixed_dictionaries({"capabilities": st.lists(SOUND, max_size=1) | JUNK})
    | JUNK
)


@settings(max_examples=400)
@given(FILES)
def test_strict_validation_and_the_schema_agree(value: Any) -> None:
    found = problems(value)
    ours = [
        p for p in found if not any(mark in p for mark in (*BEYOND, "has no 'cmd'"))
    ]
    if JUDGE.is_valid(value):
        assert not ours
    else:
        assert found
