"""What plugin authors test with: contract classes and simulated services."""
