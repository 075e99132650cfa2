"""The table of what each node's configuration said at its last start."""

from __future__ import annotations

import json
from collections.abc import Mapping

from agenthost import Keep
from sqlalchemy import Column, Connection, MetaData, Table, Text, delete, insert

metadata = MetaData()

configurations = Table(
    "configurations",
    metadata,
    Column("node", Text, primary_key=True),
    # By key the digest of its value; of what may be a secret only that it is set.
    Column("said", Text, nullable=False),
)


def keep_said(
    connection: Connection, node: str, said: Mapping[str, str], also: Keep | None
) -> None:
    """Keep what a node's configuration says, and ``also`` in the same commit."""
    connection.execute(delete(configurations).where(configurations.c.node == node))
    row = {"node": node, "said": json.dumps(said)}
    connection.execute(insert(configurations), row)
    if also is not None:
        also(connection)
