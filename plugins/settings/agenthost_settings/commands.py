"""tmp"""

import click


@click.group()
def config() -> None:
    """X"""
