"""Messages: what nodes say to each other of leases and rights, their packets, and core effects."""
