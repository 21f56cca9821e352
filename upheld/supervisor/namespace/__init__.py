"""A network namespace for the processes of an instance, as root on Linux.

Inside there is a loopback device alone. Names of the deployment lead to the broker of the row, by a
hosts file of the processes' own. Every other address is refused at once, and noted. The namespace
has no name: it ends with the processes that are in it, however they end.

It shows what an application asks for. It is no jail: a process of root can leave it.
"""

from upheld.supervisor.namespace.namespace import (
    Namespace,
    Outside,
    advertised,
    demand_possible,
    fenced,
)

__all__ = ["Namespace", "Outside", "advertised", "demand_possible", "fenced"]
