"""What stands between channels and agents, once for all channels."""
