"""The scheduler's cache, the one writer of the columns. Watch events and assumptions go in, Snapshots come out. No I/O
here.
"""

from extender.engine.cache.cache import Cache, CacheError
