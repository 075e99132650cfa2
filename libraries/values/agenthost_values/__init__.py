"""Values: frozen dataclasses that cost little until one is made."""
