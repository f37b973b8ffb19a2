"""Relayed pairs: one request shared by two HTTP workers."""
