"""What docs/providers.md tells can be done as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from agenthost.testing.daemons import Daemons

PAGE = (Path(__file__).parents[3] / "docs" / "providers.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


async def test_the_configuration_of_the_page_is_taken_without_a_warning(
    daemons: Daemons,
) -> None:
    config, environ = "\n".join(blocks("toml")), {"PORTKEY_API_KEY": "pk-1"}
    daemon = await daemons.start(config=config, environ=environ)
    assert daemon.daemon.warnings == []
    models = await daemon.http.get("/api/models?provider=house")
    assert [model["id"] for model in models.json()["models"]] == ["small", "large"]
    target = daemon.daemon.models.resolve("groq", "groq/openai/gpt-oss-120b")
    assert target.model.upstream_id == "openai/gpt-oss-120b"


async def test_every_address_of_the_page_answers(daemons: Daemons) -> None:
    daemon = await daemons.start()
    commands = "\n".join(blocks("sh")).replace("\\\n", " ")
    found = re.findall(
        r"curl (?:-X (\w+) )?'?http://127\.0\.0\.1:4200([^'\s]+)", commands
    )
    assert len(found) == 7
    for method, path in found:
        if path.endswith("/test"):
            continue  # it would reach for the provider
        body = {"api_key": "k"} if method == "POST" else None
        answer = await daemon.http.request(method or "GET", path, json=body)
        assert answer.status_code == 200, path
