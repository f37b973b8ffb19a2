"""Caches of encoded text: L0 for whole prompts, L1 for shared pieces of prompts."""
