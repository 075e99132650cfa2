"""Tests of the rate limiter."""
