"""gRPC calls over HTTP/2, by our own hands: bytes in, messages out, no task per message."""
