"""Pairs: prefill/decode requests that two engines share, and the handover of a prompt between
them.
"""
