"""The Messages API of Anthropic, and what hostings change of it."""
