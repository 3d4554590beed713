"""Reprieve's scheduling engine. A module imports only from floors below its own, which are, from the top:

    simulation                                            Plays workloads against the real scheduler, in virtual time.
    assembly                                              Builds a backend from the parts below; starts and stops it.
    answers | verbs                                       Answers for people: why, what if, history. The extender verbs for kube-scheduler.
    recordings                                            What a scheduler saw and decided, in a file from which it can be decided again.
    evaluation | scheduler                                The dry run of one pod. The scheduling loop, binding cycles, and evictions.
    records | http_extender                               Recent attempts and preemptions. The client for extenders of the configuration.
    runtime | plugins                                     Runs the plugins of a profile. The in-tree plugins.
    preemption | cache | queue | apiserver | embedded     The Evaluator. Scheduler cache. Queue. API client. Embedded API server.
    framework                                             The contract of plugins: everything that a plugin author imports.
    snapshot                                              THE CORE: the cluster as arrays.
    workloads | config                                    Pods and claims that controllers make. KubeSchedulerConfiguration.
    klog                                                  Log lines in klog's formats.
    protocol | cel                                        The wire types of the scheduler extender protocol. Device selectors.
    objects | metrics | concurrency                       API objects and values read from them. Metrics. Threads and files.
    golang                                                Values as Go prints and reads them: quoting, JSON, YAML, times, int64.

`testing` stands beside: builders and laws for plugin authors and for our own tests; the engine never imports it.
There is no HTTP server in here; requests, pages and commands are in the package `api`.
"""

__version__ = "0.1.0"
