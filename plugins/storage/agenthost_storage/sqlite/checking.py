"""A look through the whole database while it is in use."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from .damage import CHECK, is_damage
from .reader import open_readonly

AFTER = 10.0
"""Seconds after the start: the first requests come first."""


async def find_damage(path: Path) -> bool:
    """Look through a database that was closed cleanly; tell whether it is damaged.

    It reads beside everything else, on a connection and a thread of its own, and may be
    cancelled at any time. Other errors than damage tell nothing.
    """
    await asyncio.sleep(AFTER)
    try:
        connection = await open_readonly(path)
    except sqlite3.Error as error:
        return is_damage(error)
    try:
        ((verdict,),) = await connection.execute_fetchall(CHECK)
    except sqlite3.Error as error:
        return is_damage(error)
    except asyncio.CancelledError:
        # Otherwise the thread would go on to the end of the file.
        await connection.interrupt()
        raise
    finally:
        await connection.close()
    return str(verdict) != "ok"
