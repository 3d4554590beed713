"""Leader election through a Lease."""
