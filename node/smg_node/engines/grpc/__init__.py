"""gRPC engines: calls, streams and contract detection of an engine behind a gRPC transport."""
