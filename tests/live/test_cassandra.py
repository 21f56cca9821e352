"""A Cassandra as the store of designs.

One server serves a run and ends with it, and tells every row that is written.
"""

from pathlib import Path

import pytest
from cassandra import OperationTimedOut
from cassandra.query import BatchStatement
from servers import hear

from upheld.impl.common.stores import Cassandra as Client
from upheld.stores import Cassandra
from upheld.stores.cassandra_server.process import server_of
from upheld.supervisor.reaper import RunScope
from upheld.verdicts import Inconclusive

END_S = 10.0


def test_every_row_is_told(tmp_path: Path) -> None:
    """A row is told by whichever of the known statements it was written.

    Another application on the same server has its own rows. A store that is held can be read, and
    not be written.
    """
    with RunScope() as run:
        store = Cassandra(run, tmp_path, "trial-one")
        other = Cassandra(run, tmp_path, "trial-two")
        server = server_of(run)
        with store.held():
            assert store.rows() == []
        design = Client(store.address)
        design.write("balances", {"ada": "1", "bob": '{"a": "it\'s"}'})
        design.session.execute(
            "UPDATE state SET value = '2' WHERE stage = 'balances' AND key = 'ada'"
        )
        design.session.execute(
            "INSERT INTO state (stage, key, value) VALUES (%s, %s, %s)", ("totals", "x", "3")
        )
        batch = BatchStatement()
        for key in "yz":
            batch.add(design.insert, ("totals", key, "4"))
        design.session.execute(batch)
        hear(store, 6)

        told = store.writes()
        assert sorted(write[1:] for write in told) == [
            *[("balances", key) for key in ("ada", "ada", "bob")],
            *[("totals", key) for key in "xyz"],
        ]
        assert all(0 <= ago_s < END_S for ago_s, _, _ in told)
        assert store.writes() == []
        assert store.rows()[:2] == [("balances", "ada", "2"), ("balances", "bob", '{"a": "it\'s"}')]
        assert design.rows("balances") == {"ada": "2", "bob": '{"a": "it\'s"}'}
        assert (other.rows(), other.version()) == ([], 0)

        with store.held():
            with pytest.raises(OperationTimedOut):
                design.session.execute(design.insert, ("totals", "z", "5"), timeout=0.5)
            assert [value for _, key, value in store.rows() if key == "z"] == ["4"]
        design.write("totals", {"z": "6"})
        hear(store, 7)
        assert [value for _, key, value in store.rows() if key == "z"] == ["6"]

        before = server.process.pid
        kept = store.rows()
        with store.down():
            assert (server.process.poll(), store.rows()) == (-9, kept)
        assert server.process.pid != before
        assert store.rows() == kept
        assert {write[1:] for write in store.writes()} == {("totals", "z")}  # before it was killed
        known = store.version()
        design.write("totals", {"z": "7"})
        hear(store, known + 1)
        assert {write[1:] for write in store.writes()} == {("totals", "z")}

        known = store.version()
        design.session.execute(
            """INSERT INTO state JSON '{"stage": "balances", "key": "eve", "value": "5"}'"""
        )
        hear(store, known + 1)
        with pytest.raises(Inconclusive, match="INSERT INTO state JSON"):
            store.writes()
        for one in (design, store, other):
            one.close()

    assert server.process.wait(END_S) == -9
