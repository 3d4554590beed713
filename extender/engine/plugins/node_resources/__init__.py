"""NodeResourcesFit and NodeResourcesBalancedAllocation: the free resources of nodes, and the balance between them."""
