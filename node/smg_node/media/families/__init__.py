"""Families of image processors: one file each, and the registry that makes one from a checkpoint's files; pure."""
