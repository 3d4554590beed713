"""The HTTP routes, one module a family. A route reads the body, asks the engine, writes the answer."""
