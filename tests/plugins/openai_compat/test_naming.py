"""Which agent answers, and who is told that there is none."""

from __future__ import annotations

from agenthost.testing.daemons import RunningDaemon

from .test_chat import ask

NOBODY = "4b1d2c3e-0000-4000-8000-00000000beef"


async def test_an_agent_is_named_in_many_ways(daemon: RunningDaemon) -> None:
    first, second = await daemon.agent("ada"), await daemon.agent("bob")
    plain = second.id.replace("-", "")
    forms = {
        "service:bob": "bob",
        "bob": "bob",
        second.id: "bob",
        second.id.upper(): "bob",
        plain: "bob",
        f"urn:uuid:{second.id}": "bob",
        first.id: "ada",
        "gpt-4o": "ada",
        "openai/gpt-4o": "ada",
        "Bob": "ada",
        "": "ada",
    }
    for model, name in forms.items():
        answer = await ask(daemon, model=model)
        assert answer.json()["model"] == f"service:{name}", model


async def test_what_names_nobody_is_not_found(daemon: RunningDaemon) -> None:
    agent = await daemon.agent("ada")
    for model in ("service:nobody", "service:", NOBODY, f"service:{agent.id}"):
        for stream in (False, True):
            answer = await ask(daemon, model=model, stream=stream)
            assert answer.status_code == 404
            told = answer.json()
            assert (told["code"], told["param"]) == ("model_not_found", "model")


async def test_without_agents_there_is_no_model(daemon: RunningDaemon) -> None:
    answer = await ask(daemon, model="gpt-4o")
    assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")
