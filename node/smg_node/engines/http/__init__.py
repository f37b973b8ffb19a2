"""HTTP engines: workers behind an OpenAI-like HTTP API: their metadata, load and relayed
requests.
"""
