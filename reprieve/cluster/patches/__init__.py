"""The application of the four types of patches to an object. Nothing is stored."""
