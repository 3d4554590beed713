"""Reprieve's scheduling engine. A module imports only from floors below its own, which are, from the top:

    simulation                                        Plays workloads against the real scheduler, in virtual time.
    assembly                                          Builds a backend from the parts below; starts and stops it.
    answers | verbs                                   Answers for people. The extender verbs.
    recordings                                        What a scheduler saw and decided, in a file that can be replayed.
    evaluation | scheduler                            The dry run of one pod. Scheduling loop and binding cycles.
    records | http_extender                           Recent attempts. The client for extenders.
    runtime | plugins                                 Runs the plugins of a profile. The in-tree plugins.
    preemption | cache | queue | apiserver | embedded The Evaluator. Cache. Queue. API client. API server.
    framework                                         The contract of plugins: everything that a plugin author imports.
    snapshot                                          THE CORE: the cluster as arrays.
    workloads | config                                Pods and claims that controllers make. KubeSchedulerConfiguration.
    klog                                              Log lines in klog's formats.
    protocol | cel                                    Wire types of the extender protocol. Device selectors.
    objects | metrics | concurrency                   API objects and values read from them. Metrics. Threads and files.
    golang                                            Values as Go prints and reads them.

`testing` stands beside: builders and laws for plugin authors and for our own tests; the engine never imports it.
There is no HTTP server in here; requests, pages and commands are in the package `api`.
"""

__version__ = "0.1.0"
