"""InterPodAffinity: affinity and anti-affinity between pods, of the pod to place and of existing pods."""
