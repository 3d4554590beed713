"""Where the memory of the process is limited, what requests may take is."""

import resource
import subprocess
import sys

from api.settings.settings import read_settings

GIB = 2**30
MIB = 2**20


def test_bodies_and_questions_share_a_limited_memory() -> None:
    program = (
        "from api.settings.settings import read_settings as read; print(read({}).max_bodies, read({}).question_memory)"
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (GIB + 400 * MIB, GIB + 400 * MIB))

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, preexec_fn=limit)
    max_bodies, question_memory = map(int, done.stdout.split())

    assert 5 * max_bodies <= GIB // 2
    assert 2 * question_memory <= GIB // 2
    assert read_settings({"REPRIEVE_QUESTION_MEMORY": "2000000"}).question_memory == 2_000_000
