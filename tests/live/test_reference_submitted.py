"""The reference by spark-submit, without the harness, as the README starts it."""

import signal
from pathlib import Path

from submitted import CENTS, DEADLINE_S, WAVE, Ledger, wait

from upheld.brokers import Broker
from upheld.supervisor.reaper import RunScope


def test_a_bootstrap_and_a_checkpoint_are_enough(broker: Broker, tmp_path: Path) -> None:
    """The postings of `entries` are summed in `balances`, and SIGTERM ends the driver."""
    with RunScope() as run:
        ledger = Ledger(broker, run, tmp_path)
        ledger.feed()
        ledger.submit()
        wait("the wave is summed", ledger.is_summed)
        ledger.driver.send_signal(signal.SIGTERM)

        assert ledger.sums[-1] == WAVE * CENTS
        assert ledger.driver.wait(DEADLINE_S) == 128 + signal.SIGTERM
        ledger.reading.close()
