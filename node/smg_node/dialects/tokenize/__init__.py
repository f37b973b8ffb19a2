"""Tokenize: bodies and answers of tokenizing and detokenizing, with the prompts of generations."""
