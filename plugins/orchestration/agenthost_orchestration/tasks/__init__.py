"""Tasks that agents leave for each other, and take."""
