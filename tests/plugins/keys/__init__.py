"""Named keys and the people they stand for."""
