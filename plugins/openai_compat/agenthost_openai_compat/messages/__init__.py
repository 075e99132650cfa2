"""``/v1/messages``: agents as Anthropic's clients speak to models."""
