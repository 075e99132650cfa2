"""The database under load, faults and upgrades."""
