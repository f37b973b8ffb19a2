"""The only part of the mesh that touches the world."""
