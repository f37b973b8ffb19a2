"""Prefix hints: what nodes exchange about the engines' prefix caches, for cache-aware routing."""
