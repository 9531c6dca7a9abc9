"""Work for the workers of a cluster in the tests."""

from __future__ import annotations

import os
import signal
import time


def tripled(job: int) -> int:
    """Three times a number; the seventh takes its worker down."""
    if job == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return 3 * job
