"""`upheld broker`: the broker in the foreground, to try things on."""

import argparse
import json

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
            place = {
                "kind": broker.kind,
                "version": broker.version,
                "bootstrap": broker.bootstrap,
            }
            said = f"{broker.kind} {broker.version} answers at {broker.bootstrap}; Ctrl-C ends it"
            serves = True
            print(json.dumps(place) if arguments.json else visible(said), flush=True)
            while not broker.ended(1.0):
                pass
            raise MachineProblem(
                f"The broker ended by itself; {out / 'logs' / 'broker.log'} has its last words."
            )
    except KeyboardInterrupt:
        if not serves:
            raise
    return 0  # an interrupt is its normal end
