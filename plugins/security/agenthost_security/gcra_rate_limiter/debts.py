"""One float per client, in a table whose size never changes."""

from __future__ import annotations

from mmap import mmap

WAYS = 16
ROWS = 1 << 17
BYTES = ROWS * WAYS * 16


class Debts:
    """When each client will have paid off what it used, by a number of 64 bits.

    A dict takes over 100 bytes a client, and must be gone through to be cleaned. Here a
    client has 16 bytes in one of sixteen places of a row that its number leads to, and
    who comes new takes the place of whoever owes least, mostly nobody. Pages that no
    client has led to take no memory.
    """

    def __init__(self) -> None:
        memory = memoryview(mmap(-1, BYTES))
        self._keys = memory.cast("Q")
        self.due = memory.cast("d")

    def place(self, key: int) -> int:
        """Find where in ``due`` the number of a client stands, 0.0 when it is new."""
        # Bytes are hashed with a secret of the process: nobody chooses in whose row
        # they are.
        row = hash(key.to_bytes(8)) % ROWS * 2 * WAYS
        keys, first = self._keys[row : row + WAYS].tolist(), row + WAYS
        if key in keys:
            return first + keys.index(key)
        due = self.due[first : first + WAYS].tolist()
        least = due.index(min(due))
        self._keys[row + least] = key
        self.due[first + least] = 0.0
        return first + least
