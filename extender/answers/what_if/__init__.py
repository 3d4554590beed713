"""What would happen if: a copy of the cluster is played through. Manifests come in, and placements and evictions come
out.
"""
