"""The client of the API server: requests, informers, writes, and the lease of the leader. Nothing is decided in
here.
"""
