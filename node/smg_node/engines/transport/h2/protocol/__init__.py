"""Protocol: client side of HTTP/2 (RFC 9113) with HPACK (RFC 7541), as machines without I/O.
Pure.
"""
