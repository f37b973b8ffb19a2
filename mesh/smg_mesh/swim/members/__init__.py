"""Members: the member table, its rows, suspicion timeouts, round trips and flap damping."""
