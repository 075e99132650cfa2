"""``/v1``: agents behind the dialects of OpenAI and of Anthropic."""
