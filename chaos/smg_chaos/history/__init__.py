"""History benchmark (`smg-chaos history`): the cost of a stored response, for each kind of
store.
"""
