"""Families whose thoughts and calls are one grammar; every module here has its `FORMATS`."""
