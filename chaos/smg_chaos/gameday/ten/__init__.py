"""Ten short scenarios in one: joins, crashes, leaves, limits, conversations and affinity, known
weak points of gateways.
"""
