"""Global memory and the data cache: which stores were flushed, in which order, and who looked too early."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ptokit.core.block import Block
from ptokit.core.pipes import MTE2, MTE3, NAMES, Instruction, Step, Touch, W
from ptokit.core.regions import Region, meet
from ptokit.findings import Finding, Severity

if TYPE_CHECKING:
    from ptokit.core.order import Seen

PAIR = 'k.set_flag("S", "{pipe}", 0); k.wait_flag("S", "{pipe}", 0)'
FLUSH = 'k.pipe_barrier("ALL"); k.dcci(); k.dsb()'


@dataclass(eq=False)
class Store:
    """A store that went into the data cache."""

    step: Step
    touch: Touch
    region: Region
    cleaned: Instruction | None = None  # a dcci that is ordered after it
    flushed: int = 0  # S's write that completed the flush


def _looks_past_the_cache(step: Step, touch: Touch) -> bool:
    """A DMA that reads: a load, or a store that adds to what is there."""
    return (step.pipe == MTE2 and not touch.writes) or (step.pipe == MTE3 and touch.atomic == "dma")


@dataclass
class Coherence:
    """The stores of one block, as its flushes find them."""

    block: Block
    stores: dict[int, list[Store]] = field(default_factory=dict)
    done: dict[int, list[Store]] = field(default_factory=dict)
    early: dict[object, tuple[Store, Step, bool]] = field(default_factory=dict)
    flushes: list[Step] = field(default_factory=list)

    def passed(self, step: Step) -> None:
        """A flush cleans what is ordered before it, and completes what was cleaned."""
        if step.word == "dcci":
            self.flushes.append(step)
            for store in self._open():
                if store.step.clock[store.step.pipe] <= step.clock[store.step.pipe]:
                    store.cleaned = step.instruction
        elif step.word == "dsb":
            self.flushes.append(step)
            for space, stores in self.stores.items():
                for store in stores:
                    if store.cleaned is not None:
                        store.flushed = step.clock[W]
                self.done.setdefault(space, []).extend(one for one in stores if one.flushed)
                self.stores[space] = [one for one in stores if not one.flushed]

    def _open(self) -> list[Store]:
        return [store for stores in self.stores.values() for store in stores]

    def touched(self, step: Step, touch: Touch, region: Region) -> None:
        """An access of global memory."""
        if touch.writes and touch.kind:
            self.stores.setdefault(region.space, []).append(Store(step, touch, region))
        elif self.block.target == "a5" and _looks_past_the_cache(step, touch):
            for store in (*self.stores.get(region.space, ()), *self.done.get(region.space, ())):
                heard = store.flushed and step.clock[W] >= store.flushed
                if not heard and meet(store.region, region) is not None:
                    key = (store.step.instruction.site, step.instruction.site)
                    self.early.setdefault(key, (store, step, bool(store.flushed)))

    def explains(self, early: Seen, late: Seen) -> bool:
        """A load of what stands in the cache is told as that, not as a race."""
        return (early.step.instruction.site, late.step.instruction.site) in self.early

    def findings(self) -> list[Finding]:
        """Loads that came too early, and stores that nobody flushed."""
        told = [self._too_early(*one) for one in self.early.values()]
        if self.block.stopped:
            return told  # it never came as far as its flush
        kept: dict[tuple[str, object], tuple[Finding, int]] = {}
        for store in self._open():
            if store.region.space not in self.block.read_back:
                continue
            finding = self._unflushed(store)
            key = (finding.id, finding.where)
            first, count = kept.get(key, (finding, 0))
            kept[key] = (first, count + 1)
        return told + [finding for finding, _ in kept.values()]

    def _severity(self) -> Severity:
        return Severity.ERROR if self.block.target == "a5" else Severity.WARNING

    def _unflushed(self, store: Store) -> Finding:
        writer = store.step.instruction
        later = [step for step in self.flushes if step.instruction.number > writer.number]
        cleans = [step for step in later if step.word == "dcci"]
        facts: dict[str, Any] = {
            "block": self.block.number,
            "written_by": writer.name,
            "line": writer.site.line,
            "bytes": [store.region.low, store.region.high],
        }
        kind = "SIMT" if store.touch.kind == "simt" else "scalar"
        if store.cleaned is not None:
            return self._finding(
                "PTO-H003",
                store.cleaned.site,
                f"dcci pushes out what {writer.name} at {writer.site} stored, and no dsb follows it: the host may read "
                "before it has arrived.",
                "Add k.dsb() after k.dcci().",
                facts,
            )
        if cleans:
            pipe = NAMES[store.step.pipe]
            return self._finding(
                "PTO-H002",
                cleans[0].instruction.site,
                f"this flush is not ordered after the {kind} stores of {writer.name} at {writer.site} ({pipe}): it "
                "flushes nothing that is sure to be there.",
                f'Insert k.pipe_barrier("ALL") (or a {pipe}->S flag pair) before the dcci.',
                facts,
            )
        if later:
            return self._finding(
                "PTO-H003",
                later[0].instruction.site,
                f"dsb waits for the caches, and no dcci came between it and {writer.name} at "
                f"{writer.site}: what that stored stays where it is.",
                "Call k.dcci() first, then k.dsb().",
                facts,
            )
        return self._finding(
            "PTO-H001",
            writer.site,
            f"{writer.name} writes global memory with {kind} stores, and nothing flushes the data cache before the "
            "host reads: the host sees the old values.",
            f"Add {FLUSH} at the end.",
            facts,
        )

    def _finding(self, id_: str, site: Any, message: str, fix: str, facts: dict[str, Any]) -> Finding:
        return Finding(id_, self._severity(), self.block.target, message, facts, site.where, fix)

    def _too_early(self, store: Store, step: Step, flushed: bool) -> Finding:
        writer, reader = store.step.instruction, step.instruction
        pipe = NAMES[step.pipe]
        missing = f"no S->{pipe} pair follows the flush" if flushed else "no flush has pushed it out before"
        return Finding(
            "PTO-H004",
            Severity.ERROR,
            self.block.target,
            f"{reader.name} reads what {writer.name} at {writer.site} stored through the data cache: the DMA does not "
            f"look there, and {missing}.",
            {"block": self.block.number, "lines": [writer.site.line, reader.site.line], "flushed": flushed},
            reader.site.where,
            f"Insert {PAIR.format(pipe=pipe)} after the flush, before {reader.site}."
            if flushed
            else f"Insert {FLUSH}; {PAIR.format(pipe=pipe)} before {reader.site}.",
        )
