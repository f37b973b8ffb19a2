"""Provider side of Messages: writer, listener and judge for vendors that speak this API."""
