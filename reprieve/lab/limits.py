"""The bounds on workloads, recordings and reports of the lab: its rows of the table of `extender.values.limits`."""

from typing import Final

from extender.values.limits import Door, Limit

# fmt: off
PODS_PLANNED: Final = Limit(Door.QUESTIONS, 200, "pods of a plan", "422")
PLANNED_NODES: Final = Limit(Door.ANSWERS, 200,
    "nodes that a plan draws, nodes of which it says why they are not free, and nodes that are cordoned for a move",
    "further ones are left out; none is cordoned where they are more")
WORKLOAD_BYTES: Final = Limit(Door.CONFIGURATION, 2**28,
    "bytes of a file of a workload, unpacked", "an error of `simulate`")
WORKLOAD_YAML_NODES: Final = Limit(Door.CONFIGURATION, 1_000_000,
    "YAML nodes of a file of a workload", "an error of `simulate`")
WORKLOAD_TEMPLATE_BYTES: Final = Limit(Door.CONFIGURATION, 2**20,
    "bytes of a template of scheduler_perf", "an error of `simulate`")
TEMPLATE_DEPTH: Final = Limit(Door.CONFIGURATION, 16,
    "levels of nesting of an action in a template of scheduler_perf", "the action is not supported")
WORKLOAD_NODES: Final = Limit(Door.CONFIGURATION, 200_000, "nodes of a workload", "an error of `simulate`")
WORKLOAD_PODS: Final = Limit(Door.CONFIGURATION, 2_000_000,
    "pods, or other objects, of a workload", "an error of `simulate`")
WORKLOAD_SECONDS: Final = Limit(Door.CONFIGURATION, 31 * 24 * 3600,
    "seconds of virtual time that a workload names", "an error of `simulate`")
WORKLOAD_PLAYS: Final = Limit(Door.CONFIGURATION, 10_000,
    "plays of one call: seeds x configurations", "an error of `simulate`")
RECORDING_LINE_BYTES: Final = Limit(Door.CONFIGURATION, 2**24,
    "bytes of an entry of a recording", "the recording cannot be read further")
REPORTED_SAMPLES: Final = Limit(Door.ANSWERS, 240,
    "samples of a simulation", "every second one is dropped, and half as many are taken from then on")
REPORTED_REFUSALS: Final = Limit(Door.ANSWERS, 20,
    "messages of refused pods in the report of a simulation", "rarer ones are left out")
REPLAY_DIFFERENCES: Final = Limit(Door.ANSWERS, 10_000,
    "differences in the report of `replay`, or pods elsewhere in that of `tune`", "further ones are counted")
RECORDED_ENTRIES: Final = Limit(Door.ANSWERS, 100_000,
    "entries of a recording that wait for the disk", "the recording stops, and goes on in a new file; the log says so")
RECORDED_DRAWS: Final = Limit(Door.ANSWERS, 64,
    "numbers drawn for an attempt that is recorded", "`replay` draws further ones itself")
RECORDED_ANSWER_BYTES: Final = Limit(Door.ANSWERS, 2**20,
    "bytes of an extender's answer in a recording", "it is left out, and `replay` does not decide the pod")
RECORDED_ANSWERS_BYTES: Final = Limit(Door.ANSWERS, 32 * 2**20,
    "bytes of extenders' answers that wait for the disk",
    "further ones are left out, and `replay` does not decide their pods")
SHADOW_CHANGES: Final = Limit(Door.ANSWERS, 100_000,
    "changes of the cluster that wait for the shadow", "it takes them in without deciding, and counts that")
SHADOW_DIFFERENCES: Final = Limit(Door.ANSWERS, 1000,
    "differences between the shadow and the scheduler", "older ones are dropped; all are counted")
SHADOW_REASONS: Final = Limit(Door.ANSWERS, 50,
    "reasons, and shapes of pods, that the shadow counts apart", "further ones are counted together")
SCHEMA_ERROR_CHARACTERS: Final = Limit(Door.ANSWERS, 200,
    "characters of what is wrong by the schema that `doctor` repeats", "it is cut")
DOCTOR_SECONDS: Final = Limit(Door.ANSWERS, 30,
    "seconds for which `doctor` waits for an answer, whatever the configuration says", "the call has failed")
