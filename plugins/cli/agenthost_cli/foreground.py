"""Run a daemon in the foreground until a signal or a request ends it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from pathlib import Path

from agenthost import AgentHostError, Daemon

from .logs import set_up_logs

SECOND_SIGNAL_EXIT = 130
COLLECT_AFTER = (10_000, 20, 50)


def run_daemon(home: Path) -> int:
    """Run until stopped; return the exit code.

    Returns:
        0 after an orderly end, 1 when the start failed (the reason is on standard
        error), 130 when a second signal cut the end short.
    """
    set_up_logs()
    try:
        return asyncio.run(_serve(home))
    except KeyboardInterrupt:
        return SECOND_SIGNAL_EXIT


async def _serve(home: Path) -> int:
    daemon = Daemon(home)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, _on_signal, daemon)
    try:
        await daemon.start()
    except AgentHostError as error:
        _say(f"agenthost did not start: {error.message}")
        return 1
    logging.getLogger("agenthost").setLevel(daemon.config.log_level.upper())
    _greet(daemon)
    _settle_memory()
    await daemon.stop_requested.wait()
    await daemon.stop()
    return 0


def _settle_memory() -> None:
    """Keep the collector away from what stays: it costs a busy daemon a seventh."""
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    gc.enable()


def _on_signal(daemon: Daemon) -> None:
    if daemon.stop_requested.is_set():
        os._exit(SECOND_SIGNAL_EXIT)
    daemon.request_stop()


def _greet(daemon: Daemon) -> None:
    for warning in daemon.warnings:
        _say(f"warning: {warning}")
    provider, model = daemon.models.names_of_default()
    _say(f"agenthost {daemon.version} serves at http://{daemon.address}/")
    _say(f"default model: {model} at {provider}")
    _say("next: open that address in a browser, or see README.md for curl")


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
