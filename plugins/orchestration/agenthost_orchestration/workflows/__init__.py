"""Workflows: agents chained in steps, run as durable jobs."""
