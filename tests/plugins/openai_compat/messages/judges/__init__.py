"""Anthropic's own clients against ``/v1/messages``."""
