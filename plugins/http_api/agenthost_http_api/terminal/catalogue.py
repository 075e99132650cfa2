"""``agenthost providers`` and ``agenthost usage``: who answers, and what it cost."""

from __future__ import annotations

import click

from .asking import Here, as_json, rows_of, segment, sure

PROVIDERS = ("name", "auth_status", "env_var", "model_count", "base_url")
USAGE = ("model", "provider", "request_count", "input_tokens", "output_tokens")
TRIAL_SECONDS = 60


@click.group()
def providers() -> None:
    """See providers of models, set their keys and try them."""


@providers.command("list")
@as_json
@click.pass_obj
def list_providers(here: Here, *, as_json: bool) -> None:
    """List the providers and whether each has its key."""
    answer = here.connect().get("/api/providers")
    if as_json:
        here.json(answer)
        return
    heads = ("name", "key", "variable", "models", "address")
    here.table(heads, rows_of(answer["providers"], PROVIDERS))


@providers.command("set-key")
@click.argument("provider")
@click.option("--stdin", is_flag=True, help="Read the key from standard input.")
@as_json
@click.pass_obj
def set_key(here: Here, provider: str, *, stdin: bool, as_json: bool) -> None:
    """Keep a key for PROVIDER: it is asked for, and never an argument."""
    # An argument would stand in the shell's history and in the list of processes.
    key = here.text("-") if stdin else click.prompt("key", hide_input=True)
    path = f"/api/providers/{segment(provider)}/key"
    answer = here.connect().post(path, {"api_key": key.strip()})
    here.json(answer) if as_json else click.echo(f"{provider} is configured")


@providers.command("remove-key")
@click.argument("provider")
@sure
@as_json
@click.pass_obj
def remove_key(here: Here, provider: str, *, as_json: bool) -> None:
    """Forget the kept key of PROVIDER."""
    answer = here.connect().delete(f"/api/providers/{segment(provider)}/key")
    here.json(answer) if as_json else click.echo(f"the key of {provider} is removed")


@providers.command("test")
@click.argument("provider")
@as_json
@click.pass_obj
def trial(here: Here, provider: str, *, as_json: bool) -> None:
    """Make one small call to PROVIDER; it may cost a little."""
    path = f"/api/providers/{segment(provider)}/test"
    told = here.connect().post(path, timeout=TRIAL_SECONDS)
    if as_json:
        here.json(told)
    else:
        click.echo(f"{told['model_tested']} answered in {told['latency_ms']} ms")


@click.command()
@click.option(
    "--period",
    type=click.Choice(["hour", "day", "week", "month"]),
    default="day",
    show_default=True,
)
@click.option("--by-model", is_flag=True, help="All that was ever used, by model.")
@as_json
@click.pass_obj
def usage(here: Here, period: str, *, by_model: bool, as_json: bool) -> None:
    """Tell what was used: tokens, calls and money."""
    path = "/api/usage/by-model" if by_model else f"/api/usage?period={period}"
    told = here.connect().get(path)
    if as_json:
        here.json(told)
    elif by_model:
        rows = rows_of(told["models"], USAGE)
        costs = [f"{row['cost_usd']:.6f}" for row in told["models"]]
        heads = ("model", "provider", "calls", "in", "out", "usd")
        here.table(heads, [[*row, cost] for row, cost in zip(rows, costs, strict=True)])
    else:
        counts = [told["request_count"], told["total_input_tokens"]]
        spent = [told["total_output_tokens"], f"{told['total_cost_usd']:.6f}"]
        row = [told["period"], told["active_agents"], *counts, *spent]
        here.table(("period", "agents", "calls", "in", "out", "usd"), [row])
