"""What the service answers when kube-scheduler calls it as an extender: filter, prioritize, preempt, bind."""
