"""Contracts: protobuf requests and responses of every published engine service, one module each.
Pure.
"""
