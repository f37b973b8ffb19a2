"""Servers: the network side of a simulated engine, over grpc.aio, its own HTTP/2, an OpenAI HTTP
API, or in memory.
"""
