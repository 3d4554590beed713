"""Kubernetes API objects as values: just the fields that the scheduler reads. No I/O, no arrays, no decisions.

Every object is a `msgspec.Struct`: decode with `objects.decoding`, never by hand. A field that is missing has Go's zero
value; it is `| None` only where Kubernetes itself tells "absent" from "empty". A class has the name of its type in Go,
and a docstring where there is more to say.
"""
