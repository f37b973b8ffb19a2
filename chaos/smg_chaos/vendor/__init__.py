"""Stand-ins of vendors: every hosting of their APIs, what they refuse, their limits, prices and faults."""
