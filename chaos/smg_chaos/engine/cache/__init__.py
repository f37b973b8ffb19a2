"""Cache: KV blocks with a prefix cache, the KV events they cause, load reports, and a store that
engines share.
"""
