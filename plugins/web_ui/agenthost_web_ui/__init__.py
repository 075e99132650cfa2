"""The chat page at ``/``."""
