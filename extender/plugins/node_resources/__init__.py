"""NodeResourcesFit and NodeResourcesBalancedAllocation: what is left on a node, and how evenly it is used."""
