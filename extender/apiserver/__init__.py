"""The only talk with an API server: requests, watches, writes. No decisions in here."""
