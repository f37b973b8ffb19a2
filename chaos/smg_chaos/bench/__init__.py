"""Benchmarks: CPU per request and token, latency and memory of gateways, alone and side by side
(`smg-chaos bench`).
"""
