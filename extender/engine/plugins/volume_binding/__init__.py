"""VolumeBinding: the volumes of a pod's claims, and the nodes that can reach them. Nothing here writes by itself."""
