"""The front: one ASGI layer, Quart behind it, one error map."""
