"""Reprieve's scheduling engine, floor by floor (a module imports only from floors below its own).

    8  following, own_cluster       a cluster that is followed; one of our own
    7  questions, engine, standalone  assembly: to answer people, to answer kube-scheduler, to decide
    6  answers                      why, who, what if: as values
    5  verbs, evaluation, scheduler what happens to a pod
    4  runtime, plugins, records    who is asked; what was decided
    3  preemption, cache, queue     what is remembered
       apiserver, embedded          the talk with an API server; an API server in memory
    2  framework                    the contract: all that a plugin author imports
    1  snapshot                     THE CORE: the cluster as arrays
    0  workloads, config, objects   words, and what controllers make of them
       metrics, log                 what is counted and logged

`testing` stands beside: builders and laws for plugin authors and for our own tests; the engine never imports it.
There is no HTTP server in here; the faces are in the package `api`.
"""

__version__ = "0.1.0"
