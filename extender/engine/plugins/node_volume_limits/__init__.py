"""NodeVolumeLimits: the number of volumes of a CSI driver that a node can attach."""
