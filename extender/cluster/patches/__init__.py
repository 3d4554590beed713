"""What a patch makes of an object: JSON patch, merge patch, strategic merge patch and server-side apply. Nothing is
stored.
"""
