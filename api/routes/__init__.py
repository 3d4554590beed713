"""The HTTP routes, one module a family: read the body, ask the engine, write the answer."""
