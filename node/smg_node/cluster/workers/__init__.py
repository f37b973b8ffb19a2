"""Workers of the cluster: the shared registry bound to this node's fleet, verdicts, sticky
sessions.
"""
