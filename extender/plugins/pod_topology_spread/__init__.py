"""PodTopologySpread: pods of a kind spread evenly over topology domains, as a demand and as a wish."""
