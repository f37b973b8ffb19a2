"""Parsing of what operators write about providers: plain values in, specs and secrets out, or an error with its path."""
