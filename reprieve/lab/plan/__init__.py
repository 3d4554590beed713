"""Plans: which running pods would have to move, and where, so that a new pod fits without evicting anybody for good."""
