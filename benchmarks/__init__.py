"""Each target measured beside its yardstick in one run: ``make bench``."""
