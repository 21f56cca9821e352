"""Sends a key to another partition than the release before it.

The mistake is to change the client, whose default partitioner is another one. It shows after a
release: outputs of a key lie in two partitions, so that they have no order.
"""

from upheld.adapter import serve
from upheld.impl.plain import Plain


class PartitionsOtherwise(Plain):
    hello = Plain.hello | {"name": "broken/partitions_otherwise", "version": "2"}
    partitioner = "consistent_random"  # of librdkafka: CRC32


serve(PartitionsOtherwise())
