"""A plugin that goes wrong fails the pod's cycle, in its own name, and nothing else."""


class PluginError(Exception):
    """A plugin raised, or answered something that its extension point does not allow.

    The message is the one upstream gives (`running "Name" filter plugin: ...`); the cause is chained.
    """

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin
