"""The client of the API server: requests, informers, writes, and the leader's lease. Nothing is decided here."""
