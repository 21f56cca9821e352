"""What the order service has to write: the cost of each order, in cents."""

from upheld.models import Map, Output, Record


def cost(order: Record) -> list[Output]:
    """Return the cost of an order, under the key of the order."""
    cents = order.value["quantity"] * order.value["price_cents"]
    return [Output(order.key, {"order": order.value["id"], "cost_cents": cents})]


ORDERS = Map(cost)
