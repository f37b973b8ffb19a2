"""Admin command line `smg-admin`: the operator's view of a node and its cluster, over the admin
API.
"""
