"""The workers this node knows, and how well they are."""
