"""Transport: bytes to an engine and back: grpcio or own HTTP/2, API keys, TLS, timeouts, status
codes.
"""
