"""What the backends of ports promise, as tests to inherit, and small ones in memory."""
