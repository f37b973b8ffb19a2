"""File source: a file, or a program that prints the same, which lists workers for this node."""
