"""The scheduler's cache, the one writer of the columns: events and assumptions go in, Snapshots come out. No I/O."""

from extender.engine.cache.cache import Cache, CacheError
