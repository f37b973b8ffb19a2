"""Dissemination: rumors and news, outgoing packets, exchanges to open, and leaving."""
