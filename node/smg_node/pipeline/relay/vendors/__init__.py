"""Calls of vendors' APIs: passed on as they came where the client speaks the vendor's API, translated otherwise."""
