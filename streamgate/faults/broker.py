"""The broker itself dies, in the middle of somebody's transaction, and comes back on the same disk."""

import operator
import time
from uuid import uuid4

from confluent_kafka import KafkaException, Producer

from streamgate.faults.aim import AIMS, hold
from streamgate.trial import Application, Trial
from streamgate.verdicts import Inconclusive, NotOffered

CONTROL = b"control"
ANSWER_S = 30.0


def restart(trial: Trial, application: Application) -> None:
    """SIGKILL the broker while a transaction of instance a is open, let the instance go on, and start the broker again.

    Beside it stands a transaction of the harness's own, which goes on as well: Inconclusive where the broker loses that, because
    then it may have lost the design's too. NotOffered on a broker that is not ours.
    """
    broker, reading = trial.bench.broker, trial.reading
    if not broker.ours:
        raise NotOffered("a cluster of somebody else is not killed")
    topic = f"streamgate-control-{uuid4().hex[:8]}"
    reading.create({topic: 1})
    control = Producer(reading.settings | {"transactional.id": topic})
    control.init_transactions(ANSWER_S)
    evidence = hold(trial, application, AIMS["with a transaction open"](trial, application))
    control.begin_transaction()
    control.produce(topic, CONTROL)
    control.flush(ANSWER_S)
    began = time.monotonic()
    broker.kill()
    trial.resume(application)
    broker.revive()
    away_ms = round((time.monotonic() - began) * 1000)
    reading.reconnect()
    try:
        control.commit_transaction(ANSWER_S)
        trial.wait(ANSWER_S, lambda: operator.eq(*reading.ends(topic, 1)))  # its marker is written after the answer
        kept = [message.value() for message in reading.records(topic, {0: 0}, committed=True)]
    except KafkaException as error:
        raise Inconclusive(f"the broker itself lost a transaction when it died: {error.args[0].str()}") from None
    finally:
        reading.delete([topic])
    if kept != [CONTROL]:
        raise Inconclusive(f"the broker itself kept {len(kept)} records of a committed transaction of one")
    trial.mark(
        "the broker died in the middle of it, and came back", away_ms=away_ms, open_records=evidence["open_records"]
    )
