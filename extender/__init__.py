"""Reprieve's scheduling engine, floor by floor (a module imports only from floors below its own).

    6  engine                       assembly: the one file that knows every part
    5  verbs, evaluation, scheduler what happens to a pod
    4  runtime, plugins             who is asked
    3  preemption, cache            what is remembered
    2  framework                    the contract: all that a plugin author imports
    1  snapshot                     THE CORE: the cluster as arrays
    0  config, objects              words

`testing` stands beside: builders and laws for plugin authors and for our own tests; the engine never imports it.
There is no HTTP server in here; the faces are in the package `api`.
"""

__version__ = "0.1.0"
