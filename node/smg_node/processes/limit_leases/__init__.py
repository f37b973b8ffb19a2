"""Limit leases: parts of the node's share of a limit, lent to data processes and returned."""
