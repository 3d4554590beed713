"""What the four types of patches make of an object. Nothing is stored."""
