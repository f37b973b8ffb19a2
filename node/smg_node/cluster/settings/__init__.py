"""Settings of the cluster: replicated values, followed live by each node, and the service to set
them.
"""
