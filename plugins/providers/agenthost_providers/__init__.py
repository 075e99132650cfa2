"""Model providers: one module each, over shared wire dialects."""
