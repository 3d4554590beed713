"""Who sends a request: which names a caller may see, what keeps a request from being answered, and when a caller has
hung up.
"""
