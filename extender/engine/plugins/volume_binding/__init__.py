"""VolumeBinding: the volumes of a pod's claims, and the nodes that can reach them. This package does not write to the
API server by itself.
"""
