"""Faults between a client and an API server: `script` decides when one happens, `answers` and `watches` what happens.

transport = FaultyTransport(server, Fault(answers.status(410), verb="watch"))
"""

from tests.kit.faults import answers, watches
from tests.kit.faults.script import Action, Call, Fault, FaultyTransport
