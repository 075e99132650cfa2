"""TOML into pydantic models; every module is imported for itself."""
