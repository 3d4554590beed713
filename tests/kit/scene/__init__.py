"""Scenes: a cluster that a test changes by hand, and a scheduler that decides for it, in memory or over sockets.

`by_hand` is what is done to a cluster and seen of it, `running_scheduler` the scheduler, `stages` where both are.
"""

from tests.kit.scene.by_hand import ClusterByHand
from tests.kit.scene.scene import Scene, a_scene
