"""What would happen if: manifests are played through in a copy of the cluster; placements and evictions come out."""
