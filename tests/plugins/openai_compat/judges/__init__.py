"""Vendors' own clients against ``/v1``."""
