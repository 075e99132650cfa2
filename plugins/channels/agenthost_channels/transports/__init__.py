"""What the adapters of several channels share."""
