"""Wire formats of streams: server-sent events and AWS frames."""
