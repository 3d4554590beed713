"""Who sends a request: which names it may see, what keeps it from being answered, and when the caller hung up."""
