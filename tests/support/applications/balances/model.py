"""The balances that are right: orders add to an account, and refunds take away."""

from upheld.models import Fold, Output, Record

LARGE_CENTS = 1_400


def balance(cents: int, record: Record) -> tuple[int, list[Output]]:
    """Return the next balance of an account, and what is written of it."""
    amount = record.value["quantity"] * record.value["price_cents"]
    cents += amount if record.input == "orders" else -amount
    said = {"balance_cents": cents, "after": record.value["id"]}
    outputs = [Output(record.key, said, to="balances")]
    if amount >= LARGE_CENTS:
        outputs.append(Output(record.key, f"large: {record.value['id']}".encode(), to="alerts"))
    return cents, outputs


BALANCES = Fold(balance, initial=0, inputs=("orders", "refunds"), outputs=("balances", "alerts"))
