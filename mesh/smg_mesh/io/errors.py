"""Mesh errors: what goes wrong in the mesh and has to be reported to its caller."""


class MeshError(Exception):
    """The mesh cannot do what was asked; the message names the option, the port or the member."""
