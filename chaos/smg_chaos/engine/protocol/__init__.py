"""Protocol: the gRPC contracts of real engines, the behaviour of their servicers, faults, and
messages by hand.
"""
