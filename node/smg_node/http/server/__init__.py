"""Server: client connections, their limits, and the HTTP/1.1 parsers."""
