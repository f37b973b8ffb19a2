"""Issuers: keys of token issuers fetched by one node for all, opaque tokens asked about, subjects denied."""
