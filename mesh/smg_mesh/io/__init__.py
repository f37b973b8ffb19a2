"""Mesh io: driver, sockets, streams, disk and security: the only part of the mesh that does I/O."""
