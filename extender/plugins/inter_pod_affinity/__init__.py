"""InterPodAffinity: pods near pods and away from pods, as a demand and as a wish, in both directions."""
