"""The checks of `reprieve doctor`: an extender in any language, asked from the outside as kube-scheduler would ask it.

Nothing here knows which extender answers. A finding says what kube-scheduler 1.36 would make of the answer.
"""
