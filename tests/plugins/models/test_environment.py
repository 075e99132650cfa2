"""What providers take from the daemon's environment."""

from __future__ import annotations

import pytest
from agenthost.testing.daemons import Daemons

ID, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
ACCESS = {"AWS_ACCESS_KEY_ID": ID, "AWS_SECRET_ACCESS_KEY": SECRET}


@pytest.mark.parametrize(
    ("environ", "keys"),
    [
        ({}, []),
        ({"AWS_ACCESS_KEY_ID": ID}, []),
        ({"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": "t"}, []),
        (ACCESS, [f"{ID}:{SECRET}"]),
        ({**ACCESS, "AWS_SESSION_TOKEN": " t/1+= "}, [f"{ID}:{SECRET}:t/1+="]),
        ({**ACCESS, "AWS_BEARER_TOKEN_BEDROCK": "bearer"}, ["bearer"]),
        (
            {"AWS_BEARER_TOKEN_BEDROCK": "one", "AWS_BEARER_TOKEN_BEDROCK_2": "two"},
            ["one", "two"],
        ),
    ],
)
async def test_bedrock_takes_the_credentials_that_aws_tools_take(
    daemons: Daemons, environ: dict[str, str], keys: list[str]
) -> None:
    models = (await daemons.start(environ=environ)).daemon.models
    assert [key.reveal() for key in models.keys_of("bedrock")] == keys
    assert models.auth_status("bedrock") == ("configured" if keys else "missing")


@pytest.mark.parametrize(
    ("environ", "region"),
    [
        ({}, "us-east-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "eu-west-1"),
        ({"AWS_REGION": "us-gov-west-1", "AWS_DEFAULT_REGION": "x"}, "us-gov-west-1"),
    ],
)
async def test_the_region_stands_in_the_addresses(
    daemons: Daemons, environ: dict[str, str], region: str
) -> None:
    daemon = (await daemons.start(environ=environ)).daemon
    facts = daemon.models.providers["bedrock"].facts
    assert facts.base_url == f"https://bedrock-runtime.{region}.amazonaws.com"
    assert facts.probe is not None
    assert facts.probe.url.startswith(f"https://bedrock.{region}.amazonaws.com/")
    assert daemon.warnings == []


async def test_what_is_no_region_is_told_and_goes_nowhere(daemons: Daemons) -> None:
    environ = {"AWS_REGION": "evil.example/#-1"}
    daemon = (await daemons.start(environ=environ)).daemon
    facts = daemon.models.providers["bedrock"].facts
    assert facts.base_url == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert daemon.warnings == ["AWS_REGION: 'evil.example/#-1' is no region"]


async def test_a_configured_address_wins_over_the_region(daemons: Daemons) -> None:
    url = "https://bedrock-runtime.ap-south-1.amazonaws.com"
    daemon = await daemons.start(
        config=f'[providers.bedrock]\nbase_url = "{url}"\n',
        environ={"AWS_REGION": "eu-west-1"},
    )
    assert daemon.daemon.models.providers["bedrock"].facts.base_url == url
