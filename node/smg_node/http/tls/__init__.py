"""TLS of the node's own listeners: certificates from files, their renewal, handshakes."""
