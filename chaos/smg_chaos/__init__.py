"""The weather: simulated engines, faults on purpose and load."""
