"""Tokenize and detokenize: the same prompts as a generation, and what they are made of."""
