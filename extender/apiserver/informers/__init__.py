"""What the API server has: listed, watched, and kept up to date, one reflector per resource."""
