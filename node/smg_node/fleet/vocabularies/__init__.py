"""Vocabularies that the data processes of a node share: noted on disk, read once, had by a fork."""
