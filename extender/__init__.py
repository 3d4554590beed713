"""Reprieve's scheduling engine. A module imports only from floors below its own, which are, from the top:

    assembly                                              How are the parts put together, started and stopped?
    answers | verbs                                       What do people get told? What does kube-scheduler get told?
    evaluation | scheduler                                What happens to a pod, in a dry run and for real?
    records | http_extender                               What was decided? How are other extenders asked?
    runtime | plugins                                     Which plugin is asked when, and what does it say?
    preemption | cache | queue | apiserver | embedded     What is remembered, read and written?
    framework                                             What does a plugin author import?
    snapshot                                              THE CORE: how is the cluster laid out as arrays?
    workloads | config                                    What do controllers make of templates? How is a scheduler configured?
    klog                                                  How is a log line written?
    protocol                                              What do kube-scheduler and extenders send each other?
    objects | metrics | concurrency                       Which values are there, and what is counted?
    golang                                                How does Go print and read them?

`testing` stands beside: builders and laws for plugin authors and for our own tests; the engine never imports it.
There is no HTTP server in here; requests, pages and commands are in the package `api`.
"""

__version__ = "0.1.0"
