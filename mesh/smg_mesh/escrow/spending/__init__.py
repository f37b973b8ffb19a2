"""Spending: the spender's side of limits: ledger, accounts of keys,
pages of windows, standing rights.
"""
