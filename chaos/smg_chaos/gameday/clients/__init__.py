"""Clients of a cluster: load through a balancer, streamed chats, and checks of what they
receive.
"""
