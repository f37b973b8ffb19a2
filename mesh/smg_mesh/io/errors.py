"""What goes wrong in the mesh and is somebody's to know."""


class MeshError(Exception):
    """The mesh cannot do what was asked; the message names the option, the port or the member."""
