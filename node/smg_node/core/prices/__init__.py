"""Prices of models: what a call costs, by its tokens, its service tier and the day."""
