"""Encoding: pictures of a call encoded by workers of their own (encode–prefill–decode disaggregation)."""
