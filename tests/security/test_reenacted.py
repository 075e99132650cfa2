"""Incidents of the field that no other test re-enacts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agenthost
import pytest
from agenthost.testing import Daemons, RunningDaemon

ROOT = Path(agenthost.__file__).parents[2]
MASTER = "master-key-0123456789"
SQL = ("'", "' OR 1=1 --", "') UNION SELECT value FROM memory --", '"; DROP TABLE x;')
CLAIMS = {
    "x-scopes": "admin",
    "x-role": "operator",
    "x-admin": "true",
    "x-user": "operator",
    "x-forwarded-user": "operator",
    "x-forwarded-for": "127.0.0.1",
    "x-original-url": "/api/health",
    "x-rewrite-url": "/api/health",
    "x-http-method-override": "GET",
    "forwarded": "for=127.0.0.1",
    "cookie": "role=admin; scopes=admin",
}
FIELDS = {
    "scopes": ["admin"],
    "role": "admin",
    "is_admin": True,
    "principal": "operator",
}

# What runs text as code, and what makes objects of bytes.
CODE = re.compile(r"(?<![\w.])(?<!def )(?:eval|exec|compile|__import__)\(")
REVIVES = re.compile(
    r"^\s*(?:import|from)\s+(?:pickle|marshal|shelve|dill|cloudpickle|msgpack|yaml"
    r"|jsonpickle)\b",
    re.M,
)
TEMPLATES = re.compile(
    r"^\s*(?:import|from)\s+(?:jinja2|mako|string\.Template)\b", re.M
)
UNPACKS = re.compile(
    r"^\s*(?:import|from)\s+(?:zipfile|tarfile|lzma|bz2|py7zr|rarfile|gzip)\b"
    r"|unpack_archive",
    re.M,
)
FROM_DISK = re.compile(r"spec_from_file_location|SourceFileLoader|run_path|add_dll")


def sources() -> Iterator[tuple[str, str]]:
    """Every file that a daemon may run, as it is installed."""
    for folder in ("kernel", "libraries", "plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            name = path.relative_to(ROOT)
            if "testing" not in name.parts:
                yield name.as_posix(), path.read_text(encoding="utf-8")


def places(pattern: re.Pattern[str]) -> list[str]:
    return sorted(name for name, text in sources() if pattern.search(text))


def test_nothing_runs_text_as_code_but_what_writes_a_classs_init() -> None:
    """It writes it of the names of the class's own fields, as dataclasses does."""
    assert places(CODE) == ["libraries/values/agenthost_values/value_class.py"]


def test_nothing_makes_objects_of_what_is_stored_or_sent() -> None:
    assert places(REVIVES) == []


def test_a_template_language_makes_new_plugins_and_nothing_else() -> None:
    assert places(TEMPLATES) == ["plugins/cli/agenthost_cli/new_plugin.py"]


def test_no_archive_is_unpacked_but_what_the_command_line_names() -> None:
    """A copy of a home, each entry checked; what git packed; an office document.

    That is read in memory, in a process of its own with limits.
    """
    assert {place.rpartition("/")[0] for place in places(UNPACKS)} == {
        "plugins/desktop_shell/agenthost_desktop_shell",
        "plugins/storage/agenthost_storage/archive",
        "plugins/tools/agenthost_tools/documents",
    }


def test_no_plugin_is_made_of_a_file_that_lies_somewhere() -> None:
    assert places(FROM_DISK) == []


@pytest.mark.parametrize(
    ("pattern", "source"),
    [
        (CODE, "x = eval(text)"),
        (REVIVES, "def f():\n    from pickle import loads\n"),
        (TEMPLATES, "import jinja2\n"),
        (UNPACKS, "    import tarfile\n"),
        (UNPACKS, "shutil.unpack_archive(name)"),
        (FROM_DISK, "util.spec_from_file_location(name, path)"),
    ],
)
def test_what_is_looked_for_is_found(pattern: re.Pattern[str], source: str) -> None:
    assert pattern.search(source)


async def narrow_key(daemon: RunningDaemon) -> dict[str, str]:
    made = await daemon.http.post(
        "/api/keys", json={"name": "narrow", "scopes": ["read"]}
    )
    assert made.status_code == 201, made.text
    return {"authorization": f"Bearer {made.json()['key']}"}


@pytest.fixture
async def locked(daemons: Daemons) -> RunningDaemon:
    daemon = await daemons.start(config=f'api_key = "{MASTER}"\n')
    daemon.http.headers["authorization"] = f"Bearer {MASTER}"
    return daemon


async def test_what_a_client_says_of_itself_gives_it_no_right(
    locked: RunningDaemon,
) -> None:
    narrow = await narrow_key(locked)
    body: dict[str, Any] = {"name": "wide", "scopes": ["admin"], **FIELDS}
    for claims in ({}, CLAIMS):
        headers = {**claims, **narrow}
        wide = await locked.http.post("/api/keys", json=body, headers=headers)
        made = await locked.http.post(
            "/api/agents",
            json={"manifest_toml": 'name = "a"', **FIELDS},
            headers=headers,
            params={"scopes": "admin", "role": "admin"},
        )
        assert (wide.status_code, made.status_code) == (403, 403)
    stranger = {**CLAIMS, "authorization": ""}
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        answer = await locked.http.request(method, "/api/agents", headers=stranger)
        assert answer.status_code == 401


async def test_words_of_sql_are_words_everywhere(locked: RunningDaemon) -> None:
    agent = await locked.agent()
    for text in SQL:
        wrong = {"authorization": f"Bearer {text}", "x-request-id": text}
        assert (await locked.http.get("/api/agents", headers=wrong)).status_code == 401
        for path in (
            f"/api/agents/{text}",
            f"/api/agents/{agent.id}/sessions/{text}",
            f"/api/memory/agents/{agent.id}/kv/{text}",
            f"/api/approvals/{text}",
        ):
            answer = await locked.http.get(path)
            assert answer.status_code in {400, 404}, (path, answer.text)
        for query in ({"q": text}, {"agent": text}, {"after": text}):
            found = await locked.http.get("/api/sessions", params=query)
            assert found.status_code in {200, 400, 404}, found.text
            assert not found.json().get("sessions")
    assert len((await locked.http.get("/api/agents")).json()) == 1


async def test_what_lies_in_the_home_or_beside_it_is_not_run(
    daemons: Daemons, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, ran = tmp_path / "home", tmp_path / "ran"
    evil = f"open({str(ran)!r}, 'a').close()\n"
    for folder in ("plugins", "plugins/evil", "capabilities", "data", "skills", ""):
        (home / folder).mkdir(parents=True, exist_ok=True)
        for name in ("__init__.py", "plugin.py", "conftest.py", "sitecustomize.py"):
            (home / folder / name).write_text(evil)
    (home / "plugins" / "evil.pth").write_text(f"import os; {evil}")
    monkeypatch.chdir(home)
    daemon = await daemons.start(home=home)
    listed = (await daemon.http.get("/api/plugins")).json()
    assert not ran.exists()
    assert "evil" not in str(listed)


async def view_of(daemon: RunningDaemon, agent_id: str) -> list[tuple[int, bytes]]:
    asked = [
        f"/api/agents/{agent_id}",
        f"/api/agents/{agent_id}/session",
        f"/api/sessions?agent={agent_id}",
        f"/api/memory/agents/{agent_id}/kv",
        f"/api/memory/agents/{agent_id}/kv/self.secret",
    ]
    answers = [await daemon.http.get(path) for path in asked]
    return [(answer.status_code, answer.content) for answer in answers]


async def test_what_one_agent_sees_is_the_same_whatever_another_has(
    daemons: Daemons,
) -> None:
    daemon = await daemons.start()
    ada, bob = await daemon.agent("ada"), await daemon.agent("bob")
    before = await view_of(daemon, bob.id)
    assert [status for status, _ in before] == [200, 200, 200, 200, 404]
    kept = await daemon.http.put(
        f"/api/memory/agents/{ada.id}/kv/self.secret", json={"value": "of ada"}
    )
    assert kept.status_code == 200, kept.text
    daemon.model.says("hello ada")
    await ada.ask("something only ada knows")
    assert await view_of(daemon, bob.id) == before
    daemon.model.says("hello bob")
    await bob.ask("what do you know?")
    assert "ada" not in str(daemon.model.requests[-1].messages)
