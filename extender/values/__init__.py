"""Values that every room may use: API objects, configuration, wire types, texts as Go prints them. Nothing decides."""
