"""The extender protocol on the wire: bytes to what the engine is asked, and what it says to bytes. No decisions, no I/O.

One will not find HTTP here, except that what cannot be read is a `Refusal` with its status.
"""
