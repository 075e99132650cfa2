"""Security systems: one module each."""
