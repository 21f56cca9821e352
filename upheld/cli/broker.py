"""`upheld broker`: the broker in the foreground, to try things on."""

import argparse

from upheld.cli.machine import opened_broker, out_folder, run_scope
from upheld.errors import MachineProblem
from upheld.text import visible


def run_broker(arguments: argparse.Namespace) -> int:
    """Start the broker, and wait until it is interrupted."""
    out = out_folder()
    serves = False
    try:
        with run_scope() as run:
            broker = opened_broker(arguments, run, out)
            said = f"{broker.kind} {broker.version} answers at {broker.bootstrap}; Ctrl-C ends it"
            serves = True
            print(visible(said), flush=True)
            while not broker.ended(1.0):
                pass
            raise MachineProblem(
                f"The broker ended by itself; {out / 'logs' / 'broker.log'} has its last words."
            )
    except KeyboardInterrupt:
        if not serves:
            raise
    return 0  # an interrupt is its normal end
