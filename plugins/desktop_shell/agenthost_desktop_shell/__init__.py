"""Desktop capability files: parse, validate, resolve, decide."""
