"""PodTopologySpread: spreads the matching pods evenly over topology domains, as a requirement or as a preference."""
