"""Providers: other people's APIs behind this node: where they are, how they are called, what they answer, what they allow."""
