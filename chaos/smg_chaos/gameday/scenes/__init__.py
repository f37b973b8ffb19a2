"""Scenes: scenarios of single faults on a cluster, such as crashes, partitions, worker failover,
and changes.
"""
