"""Figures of the security systems, as ``make security`` prints them."""

from __future__ import annotations


def told(what: str, target: str, result: str) -> None:
    """Print a figure: what was aimed at beside what came out."""
    print(f"\n{what}: target {target}, result {result}")  # noqa: T201 - the figures are what these tests are run for
