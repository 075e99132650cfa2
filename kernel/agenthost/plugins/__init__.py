"""Finding, selecting and isolating plugins; what they may offer, what they guard."""
