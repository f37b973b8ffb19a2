"""Message: HTTP requests and replies: heads, bodies, chunked writing, server-sent events."""
