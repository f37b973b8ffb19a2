"""HTTP/2 (h2) transport: gRPC calls over this project's own HTTP/2; bytes in, messages out, no task
per message.
"""
