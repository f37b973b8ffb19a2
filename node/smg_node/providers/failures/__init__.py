"""Failures of vendors: what a body says of one, and which class it is of."""
