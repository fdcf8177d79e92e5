"""The price of a plan, by target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptokit.access.plan import Plan
from ptokit.cost import simt, vector_core
from ptokit.cost.parameters import Parameters, parameters
from ptokit.cost.parts import Cost, Part
from ptokit.errors import PtoValueError, listed
from ptokit.policies import ScatterAtomicOp, word


def element_loop(plan: Plan, numbers: Parameters) -> list[Part]:
    """cpu: a plain count of elements."""
    assert numbers.loop is not None
    each = numbers.loop.element_cycles
    return [Part("S", "element loop", plan.count * each, {"elements": plan.count, "cycles_each": each})]


PRICES: dict[str, Callable[[Plan, Parameters], list[Part]]] = {
    "cpu": element_loop,
    "a2a3": vector_core.price,
    "a5": simt.price,
}
"""What makes the parts of a call, by target."""


def of_plan(plan: Plan, parameters: Parameters | None = None) -> Cost:
    """The modelled price of a call: no measurement, see the parameters for what is public and what is assumed.

    >>> import numpy as np, ptokit as pto
    >>> src, idx = pto.Tile("float32", 16, 64), pto.Tile("int32", 1, 16)
    >>> idx.store([range(16)])
    >>> table = pto.GlobalTensor(np.zeros((32, 64), np.float32), "float32", shape=(1, 1, 1, 32, 64))
    >>> cost = of_plan(pto.mscatter(table, src, idx, conflict="default", target="a5").plan)
    >>> cost.total, [part.name for part in cost.parts if part.exposed]
    (656.0, ['launch', 'warp steps'])
    """
    numbers = parameters or _parameters_of(plan)
    if plan.target not in PRICES:
        raise PtoValueError(f"calls on {plan.target!r} have no price; priced: {listed(PRICES)}")
    if numbers.target != plan.target:
        raise PtoValueError(f"the call is one on {plan.target}, the parameters are those of {numbers.target}")
    return Cost(
        plan.target,
        numbers.clock.frequency_ghz,
        tuple(PRICES[plan.target](plan, numbers)),
        _facts(plan, numbers),
    )


def explain(priced: Plan | Cost, parameters: Parameters | None = None) -> list[dict[str, Any]]:
    """Where the cycles go: a row for each part, the largest share first."""
    return (priced if isinstance(priced, Cost) else of_plan(priced, parameters)).rows()


def _parameters_of(plan: Plan) -> Parameters:
    return parameters(plan.target)


def _facts(plan: Plan, numbers: Parameters) -> dict[str, Any]:
    """What was priced: the policies that the target looks at, and the lanes."""
    call = plan.call
    policies = {"op": call.op, "coalesce": word(call.coalesce) if plan.obeys_policies else "elem"}
    if call.is_scatter:
        policies["atomic"] = word(call.atomic)
    policies["oob"] = word(call.oob)
    if plan.target == "a5" and call.is_scatter and call.atomic is ScatterAtomicOp.None_:
        policies["conflict"] = word(call.conflict)
    lanes = {"lanes": len(plan.raw), "dropped": int((~plan.lane_live).sum())}
    return {**policies, **lanes, "bandwidth": numbers.bandwidth.model}
