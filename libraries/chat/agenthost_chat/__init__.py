"""Chat with models, in no vendor's dialect; every module is imported for itself."""
