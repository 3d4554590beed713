"""The faces of Reprieve: an HTTP service and a command line over the engine in `extender`.

Everything here decodes, calls the engine and encodes. No decision about a pod is made in this package.
"""
