"""``/v1/responses``: answers that the daemon keeps, and goes on from."""
