"""Fuzzer of a node's datagram socket: hostile packets without the cluster's key, and with it."""
