"""Informers: the objects of the API server, listed, watched and kept up to date by one reflector per resource."""
