"""Lab: network namespaces on one host, an Ethernet switch between them with link faults, and
programs in them.
"""
