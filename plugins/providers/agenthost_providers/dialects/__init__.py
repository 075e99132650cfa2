"""Wire dialects: pure translation between conversations and vendors' JSON."""
