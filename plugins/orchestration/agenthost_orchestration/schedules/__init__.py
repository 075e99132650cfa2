"""Schedules: turns, workflows and events at times."""
