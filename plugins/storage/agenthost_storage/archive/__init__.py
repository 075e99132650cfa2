"""Copies of a whole home in one file: written while it runs, read back elsewhere."""
