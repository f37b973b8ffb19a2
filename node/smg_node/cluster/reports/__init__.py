"""Reports over the whole cluster: audit log, request journeys, metrics, replicated state."""
