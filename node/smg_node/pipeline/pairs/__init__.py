"""Pairs: prefill/decode disaggregation: one request on two workers, as one call."""
