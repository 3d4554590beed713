"""Why a pod is pending, what would help, and where it waits. No text here names another pod, except as a victim."""
