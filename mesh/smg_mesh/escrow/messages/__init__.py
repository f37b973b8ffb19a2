"""Messages: what nodes say to each other of leases and rights, as packets, and effects of the core."""
