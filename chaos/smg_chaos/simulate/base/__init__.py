"""Base of a simulation: virtual clock, random sources, event log, and hash of a history."""
