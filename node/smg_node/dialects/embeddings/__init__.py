"""Embeddings: reader and answer of the API, for engines that take token ids."""
