"""Discovery: which engines Kubernetes, DNS or a file show, and what follows from that for the worker registry."""
