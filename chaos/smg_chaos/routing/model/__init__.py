"""Model: clients, gateways and engines on virtual time, and the figures of a trial."""
