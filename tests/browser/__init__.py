"""The page in a real browser, against the service as people run it. Debian's Chromium is used; nothing is
downloaded.
"""
