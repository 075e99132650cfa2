"""Files that people hand to agents: uploaded, listed, given back, deleted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agenthost import InvalidInput
from agenthost.testing import Daemons
from agenthost.testing.daemons import RunningAgent, RunningDaemon
from agenthost_http_api.file_kinds import plain_name
from agenthost_http_api.form_data import read_file

from .pictures import GIF, JPEG, PDF, PNG, WEBP, file_id, upload

MiB = 1024 * 1024
FORM = "multipart/form-data; boundary=xx"
HEAD = b'--xx\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


async def listed(agent: RunningAgent) -> list[dict[str, Any]]:
    answer = await agent.host.http.get(f"/api/agents/{agent.id}/files")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["files"])


KINDS = (
    (PNG, "image/png"),
    (JPEG, "image/jpeg"),
    (GIF, "image/gif"),
    (WEBP, "image/webp"),
    (PDF, "application/pdf"),
    ("naïve, \N{PILE OF POO}\n".encode(), "text/plain"),
    (b"<script>alert(1)</script>", "text/plain"),
    (b"\xef\xbb\xbfa,b\r\n1,2\r\n--xx--\r\n", "text/plain"),
)


async def test_a_file_comes_back_as_it_was_and_as_what_it_is(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    for data, kind in KINDS:
        made = await upload(agent, data, "a.exe")
        assert made.status_code == 201, made.text
        told = made.json()
        assert (told["name"], told["size"]) == ("a.exe", len(data))
        assert told["type"] == kind
        assert {key: (await listed(agent))[-1][key] for key in told} == told
        path = f"/api/agents/{agent.id}/files/{told['file_id']}"
        answer = await daemon.http.get(path)
        assert answer.content == data
        assert answer.headers["content-type"].partition(";")[0] == kind
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_what_no_model_reads_is_refused(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    for data in (b"", b"\0\1\2", b"\xff\xfe\x00a", b"MZ\x90\0", b"\x7fELF"):
        answer = await upload(agent, data)
        assert answer.status_code == 400
        assert answer.json()["error"].startswith("file")
    assert await listed(agent) == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Windows\\x.png", "x.png"),
        ("a\0\r\nb.png", "ab.png"),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe", "agnp.exe"),
        ("x" * 300, "x" * 200),
        ("ключ \N{PILE OF POO}.png", "ключ \N{PILE OF POO}.png"),
        ("/", "file"),
    ],
)
def test_a_name_is_the_last_step_of_a_path_without_odd_signs(
    name: str, shown: str
) -> None:
    assert plain_name(name) == shown


async def test_a_name_opens_nothing(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    before = {*daemon.daemon.home.rglob("*")}
    for name in ("../../etc/passwd", "..", "a/../../b"):
        path = f"/api/agents/{agent.id}/files/{await file_id(agent, PNG, name)}"
        assert (await daemon.http.get(path)).content == PNG
    files = daemon.daemon.files.workspace(agent.id)
    assert await asyncio.to_thread(files.list) == []
    made = {*daemon.daemon.home.rglob("*")} - before
    assert {each.suffix for each in made if each.is_file()} <= {".db-wal", ".db-shm"}


async def test_ten_mebibytes_are_taken_and_one_byte_more_is_not(
    daemon: RunningDaemon,
) -> None:
    agent = await daemon.agent()
    assert (await upload(agent, b"x" * 10 * MiB)).status_code == 201
    for size in (10 * MiB + 1, 11 * MiB):
        answer = await upload(agent, b"x" * size)
        assert answer.status_code == 413, answer.text
    assert [each["size"] for each in await listed(agent)] == [10 * MiB]


@pytest.mark.parametrize(
    ("kind", "body", "word"),
    [
        ("application/json", b"{}", "multipart/form-data"),
        ("multipart/form-data", HEAD, "multipart/form-data"),
        ('multipart/form-data; boundary=""', HEAD, "multipart/form-data"),
        (FORM, b"", "file"),
        (FORM, b"--xx--\r\n", "file"),
        (FORM, HEAD + b"no end", "file"),
        (FORM, HEAD + b"x\r\n--xy--\r\n", "file"),
        (FORM, HEAD.replace(b'"file"', b'"other"') + b"x\r\n--xx--\r\n", "file"),
        (
            FORM,
            HEAD.replace(b"\r\n\r\n", b';a="' * MiB + b"\r\n\r\n") + b"x\r\n--xx--",
            "headers",
        ),
        (FORM, b"--xx\r\n" * MiB, "file"),
        (FORM, b"\r\n" * 5 * MiB, "file"),
    ],
)
def test_a_body_that_is_no_form_with_a_file_is_refused(
    kind: str, body: bytes, word: str
) -> None:
    with pytest.raises(InvalidInput, match=word):
        read_file(kind, body)


async def test_what_is_no_form_is_the_senders_fault(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/files"
    answer = await daemon.http.post(path, json={})
    assert answer.status_code == 400
    assert "multipart/form-data" in answer.json()["error"]


def test_a_form_may_hold_more_than_the_file() -> None:
    before = HEAD.replace(b'"file"', b'"other"') + b"x\r\n"
    body = b"preamble\r\n" + before + HEAD + PNG + b"\r\n--xx--\r\nepilogue"
    assert read_file(FORM, body) == ("a", PNG)


async def test_a_deleted_file_is_gone(daemon: RunningDaemon) -> None:
    agent = await daemon.agent()
    path = f"/api/agents/{agent.id}/files/{await file_id(agent, PNG)}"
    assert (await daemon.http.delete(path)).json()["status"] == "deleted"
    for answer in (await daemon.http.get(path), await daemon.http.delete(path)):
        assert answer.status_code == 404
    assert await listed(agent) == []


async def test_files_go_with_their_agent_and_are_nobody_elses(
    daemon: RunningDaemon,
) -> None:
    agent, other = await daemon.agent("one"), await daemon.agent("two")
    made = await file_id(agent, PNG)
    path = f"/api/agents/{other.id}/files/{made}"
    assert (await daemon.http.get(path)).status_code == 404
    assert (await daemon.http.delete(path)).status_code == 404
    await daemon.http.delete(f"/api/agents/{agent.id}")
    assert [*await daemon.daemon.uploads.list(agent.id)] == []


async def test_somebody_elses_file_is_not_there(daemons: Daemons) -> None:
    running = await daemons.start(config='api_key = "master-key-0123456789"\n')
    running.http.headers["authorization"] = "Bearer master-key-0123456789"
    agent = await running.agent()
    keys = {}
    for name in ("ada", "bob"):
        body = {"name": name, "scopes": ["chat"]}
        made = await running.http.post("/api/keys", json=body)
        keys[name] = {"authorization": f"Bearer {made.json()['key']}"}
    answer = await upload(agent, PNG, **keys["ada"])
    path = f"/api/agents/{agent.id}/files/{answer.json()['file_id']}"
    seen = [await running.http.get(path, headers=keys[name]) for name in keys]
    assert [each.status_code for each in seen] == [200, 404]
    gone = await running.http.delete(path, headers=keys["bob"])
    assert gone.status_code == 404
    whole = f"/api/agents/{agent.id}/files"
    lists = [await running.http.get(whole, headers=keys[name]) for name in keys]
    assert [len(each.json()["files"]) for each in lists] == [1, 0]
    assert len(await listed(agent)) == 1, "the operator sees every file"


@pytest.mark.setting("uploads.max_files")
@pytest.mark.setting("uploads.max_bytes")
@pytest.mark.parametrize("limit", ["max_files = 3", f"max_bytes = {3 * len(PNG) + 1}"])
async def test_an_agent_has_room_for_so_many_files(
    daemons: Daemons, limit: str
) -> None:
    running = await daemons.start(config=f"[uploads]\n{limit}\n")
    agent = await running.agent()
    answers = await asyncio.gather(*(upload(agent, PNG) for _ in range(6)))
    codes = sorted(answer.status_code for answer in answers)
    assert codes == [201] * 3 + [409] * 3
    (refused, *_) = (each for each in answers if each.status_code == 409)
    assert "uploads.max" in refused.json()["error"]
    (first, *_) = await listed(agent)
    await running.http.delete(f"/api/agents/{agent.id}/files/{first['file_id']}")
    assert (await upload(agent, PNG)).status_code == 201


async def test_a_file_is_there_after_the_next_start(daemons: Daemons) -> None:
    running = await daemons.start()
    made = await file_id(await running.agent(), PNG)
    home = running.daemon.home
    await running.daemon.stop()
    again = await daemons.start(home=home)
    agent = again.known_agent("tester")
    path = f"/api/agents/{agent.id}/files/{made}"
    assert (await again.http.get(path)).content == PNG
