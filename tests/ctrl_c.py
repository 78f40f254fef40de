"""Children that hear Ctrl-C even where the tests run in the background and it is ignored."""

import sys

# A shell without job control starts `make test &` with SIGINT ignored, which children inherit, and
# Python then installs no handler. The signal gets its default back, and exec keeps the process's
# number. No preexec_fn: it may not be used where a test has threads, as a server has.
_RESTORE = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def hearing_ctrl_c(command: list[str]) -> list[str]:
    """The command, of an absolute path, with the handling of SIGINT that a terminal gives it."""
    return [sys.executable, "-S", "-c", _RESTORE, *command]
