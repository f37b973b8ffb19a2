"""Inference routes: generation, embeddings, relayed APIs, models, tokens, parsing."""
