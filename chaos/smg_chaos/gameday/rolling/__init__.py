"""The scenario of a rolling restart: every node in turn, under streams that must not notice."""
