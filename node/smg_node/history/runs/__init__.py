"""Runs: background responses: lease, event log, followers, cancellation, recovery of orphans."""
