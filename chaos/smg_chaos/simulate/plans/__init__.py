"""Plans: random histories of shared state, of limits, and of everything at once, by seed."""
