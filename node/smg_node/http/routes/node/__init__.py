"""Node routes: health probes, version, metrics and configuration of this node."""
