"""`replaced`, by the name under which plugin authors import it: `from extender.objects.decoding import replaced`."""

import sys

from extender.values.objects import decoding

__all__ = ["decoding"]

sys.modules[f"{__name__}.decoding"] = decoding
