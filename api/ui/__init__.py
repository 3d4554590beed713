"""The page for people: answers in, HTML out. Drawing is plain functions over values; no engine, no request and no decision is in here."""
