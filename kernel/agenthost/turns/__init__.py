"""The turn engine: the only place where effects begin."""
