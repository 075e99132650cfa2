"""Work that nobody waits for: who asked for it, on which terms, what came of it."""
