"""VolumeBinding: claims and the volumes for them, and from which nodes those can be reached. No API server is spoken to in here."""
