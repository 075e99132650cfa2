"""``agenthost certify channel``: hold an adapter against the contract of channels."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from .testing.certifying import Report

TESTING = "it runs with pytest: pip install 'agenthost[testing]'"


@click.group()
def certify() -> None:
    """Hold what a plugin ships against the contract of its kind."""


@certify.command("channel")
@click.argument("channel_id")
@click.option(
    "--stage",
    metavar="MODULE:NAME",
    help="What opens the service, or its simulator; the plugin's own by default.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def certify_channel(
    context: click.Context, channel_id: str, stage: str | None, *, as_json: bool
) -> None:
    """Run the contract of channels on CHANNEL_ID, and say who judges.

    It ends with 0 when every promise that can be tried is kept, else with 1.
    """
    if find_spec("pytest") is None or find_spec("pytest_asyncio") is None:
        raise click.ClickException(TESTING)
    from .testing.certifying import GROUP, certify, place_of

    place = stage or place_of(channel_id)
    if place is None:
        raise click.UsageError(
            f"no plugin has a stage for {channel_id} (entry point {GROUP}); "
            f"name one with --stage module:name"
        )
    if ":" not in place:
        raise click.UsageError(f"--stage: {place} is not module:name")
    report = certify(place)
    if not report.cases or not report.channel:
        raise click.ClickException(f"{place} does not open: {_why(report)}")
    if report.channel != channel_id:
        raise click.UsageError(f"{place} is a stage of {report.channel}")
    click.echo(_as_json(report) if as_json else "\n".join(_lines(report)))
    if report.of("broken"):
        context.exit(1)


def _why(report: Report) -> str:
    if report.cases:
        return report.cases[0]["reason"]
    return "\n".join(report.output.splitlines()[-20:])


def _as_json(report: Report) -> str:
    told = {"channel": report.channel, "judge": report.judge, "cases": report.cases}
    return json.dumps(told, indent=2)


def _lines(report: Report) -> list[str]:
    kept, broken, skipped = map(report.of, ("kept", "broken", "skipped"))
    lines = [
        f"channel {report.channel}, judged by {report.judge}",
        f"kept: {len(kept)}; broken: {len(broken)}; not played: {len(skipped)}",
    ]
    for each in broken:
        lines += [f"  broken: {each['name']}", f"    {each['reason']}"]
    lines += [f"  not played: {each['name']} ({each['reason']})" for each in skipped]
    return lines
