"""Bodies in Kubernetes' protobuf form, as Go clients send them. Read only: we answer in JSON, which the same clients take."""

from extender.embedded.schema.protobuf_objects import MEDIA_TYPE, BrokenObjectError, parse

__all__ = ["MEDIA_TYPE", "BrokenObjectError", "parse"]
