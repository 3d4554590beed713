"""Texts that begin with a byte order mark, as Windows PowerShell's `>` and many editors write them."""

import codecs
from typing import Final

_ENCODINGS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def in_utf8(text: bytes) -> bytes:
    """Returns a text in UTF-8, without its mark; one without a mark as it is. Raises UnicodeDecodeError."""
    for mark, encoding in _ENCODINGS:
        if text.startswith(mark):
            return text.decode(encoding).encode()
    return text
