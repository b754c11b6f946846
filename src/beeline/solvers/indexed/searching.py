"""queryIndex of the paper (I8, I22): which leaves may have rows that matter, and are not yet in the active set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from beeline._thread_pool import prefetched
from beeline._types import AnyArray, Floats, Ints
from beeline.data.core.block import Block, concatenate
from beeline.engines.verbs import truncation
from beeline.engines.verbs.leaves import active_of_leaves, flats_of_leaves, flats_of_rows
from beeline.index import Flats, Place, Question, Readings
from beeline.losses import ScalarLoss
from beeline.objective import Objective, Point

if TYPE_CHECKING:
    from beeline.solvers.indexed.active_set import ActiveSet

__all__ = ["Found", "Search"]

_LEAF_BYTES = 96  # where it lies, when it does not matter, what is known of it, and twice what it weighs
_GROUP = 8 << 20  # bytes that are read at a time, while those before them are looked at; less where memory is scarce
_PART = 32
_HALVINGS = 60
_NO_PLACE: Place = (np.zeros(0), 0.0)  # of places at which no leaf was read last


class Found(NamedTuple):
    """Rows that were read.

    Attributes
    ----------
    positions, block
        Where they lie, and the rows.
    labels, costs
        What belongs to them.
    flats
        Where they do not matter.
    """

    positions: Ints
    block: Block
    labels: Floats
    costs: Floats
    flats: Flats

    def pick(self, some: AnyArray) -> Found:
        """Those with a mark."""
        return self.take(np.flatnonzero(some))

    def take(self, rows: Ints) -> Found:
        """Some of them, by their numbers."""
        columns = self.positions[rows], self.block.gather(rows), self.labels[rows], self.costs[rows]
        return Found(*columns, self.flats.pick(rows))

    @staticmethod
    def joined(parts: list[Found]) -> Found:
        """Those of several readings, of which there is at least one."""
        blocks = [part.block for part in parts]
        columns = [
            np.concatenate(column) for column in zip(*((p.positions, p.labels, p.costs) for p in parts), strict=True)
        ]
        flats = Flats(*(np.concatenate(column) for column in zip(*(part.flats for part in parts), strict=True)))
        return Found(columns[0], concatenate(blocks), columns[1], columns[2], flats)

    def matter(self, z: Floats, margin: float = 0.0) -> AnyArray:
        """Whether each matters, by its score, or would if that changed by a margin."""
        matters: AnyArray = (z < self.flats.low + margin) | (z > self.flats.high - margin)
        return matters


class Search:
    """What is known of the leaves for one objective.

    A leaf that was read at some weights has no row that matters but those that were taken into the active set; of the
    others it is kept how far they were from mattering. By the change of the weights since then the index says whether
    that has changed, surely or likely: then nothing is read twice without need.

    Chunks are read at random, the sooner the more of their rows should matter. Each has a random number E of the
    exponential distribution, and is read in the order of E/weight (Efraimidis & Spirakis 2006): the chunks read so far
    are a sample, in which a chunk of weight v is with the probability 1 − exp(−vτ). So a row that was found stands for
    1/(1 − exp(−vτ)) rows like it, until all that may matter has been read.

    Parameters
    ----------
    objective
        Over the rows of an index.
    loss, cap
        The convex loss, and where it is cut off; None: nowhere.
    room
        Bytes for chunks that were read and may be wanted again.
    seed
        Of the order.

    Attributes
    ----------
    looked
        How many rows were looked at so far.
    read_chunks
        Which chunks were read.
    """

    def __init__(self, objective: Objective, loss: ScalarLoss, cap: float | None, room: int, seed: int) -> None:
        o, index = objective, objective.rows.index
        assert index is not None
        self.objective, self.loss, self.cap, self.index = objective, loss, cap, index
        self.reader, self.looked = index.reader(room), 0
        self.flats = Flats(*o.rows.concat(flats_of_leaves, o.labels, o.costs, loss=loss, cap=cap).value).narrowed()
        self.guide = index.guide.with_flats(self._flats_at(index.guide.positions(index.starts)))
        self._before = self.guide.bytes_read, self.guide.hits
        self.chunk_bytes: Ints = np.concatenate([part.chunks.nbytes for part in index.rows.manifest.parts])
        self.read_chunks = np.zeros(len(self.chunk_bytes), np.bool_)
        self._sizes: Ints = index.ends - index.starts
        self._luck = np.random.default_rng([seed, 1]).exponential(size=len(self.chunk_bytes))
        self._readings = Readings(index.n_leaves)
        self._flagged = np.zeros(index.n_leaves)  # shares of rows that a look at all rows found to matter
        self.rows_of_labels: tuple[float, float] = o.rows.sum(truncation.rows_of_labels, o.labels, o.costs).value

    def snapshot(self) -> dict[str, Any]:
        """What is known of the leaves by now; of chunks that are kept their numbers, by which they are read again."""
        known, last = self._readings, set(self._readings.numbers())
        places = [place if k in last else None for k, place in enumerate(known.places)]
        readings = {"when": known.when, "below": known.below, "above": known.above, "places": places}
        marks = {"read_chunks": self.read_chunks, "flagged": self._flagged, "looked": self.looked}
        return {**marks, "readings": readings, "reader": self.reader.snapshot(), "guide": self._guide_snapshot()}

    def restore(self, snapshot: Mapping[str, Any], active: ActiveSet) -> None:
        """Go on from a snapshot, with an active set that does."""
        self.read_chunks, self._flagged = np.array(snapshot["read_chunks"]), np.array(snapshot["flagged"])
        self.looked, known, readings = snapshot["looked"], self._readings, snapshot["readings"]
        known.when, known.below, known.above = (np.array(readings[name]) for name in ("when", "below", "above"))
        known.places = [_NO_PLACE if place is None else (np.array(place[0]), place[1]) for place in readings["places"]]
        self.reader.restore(snapshot["reader"])
        self.guide.read_again(snapshot["guide"]["kept"])
        bytes_read, hits = snapshot["guide"]["counters"]
        self._before = self.guide.bytes_read - bytes_read, self.guide.hits - hits
        self.know(active)

    def _guide_snapshot(self) -> dict[str, Any]:
        counters = [self.guide.bytes_read - self._before[0], self.guide.hits - self._before[1]]
        return {"kept": self.guide.kept, "counters": counters}

    @property
    def nbytes(self) -> int:
        """Bytes that are held for the leaves of the index, whatever is read."""
        return self.guide.nbytes + _LEAF_BYTES * self.index.n_leaves

    @property
    def exact(self) -> bool:
        """Whether what is passed over surely does not matter."""
        return self.guide.exact

    @property
    def flagged(self) -> AnyArray:
        """Which leaves have rows that the last look at all rows found to matter."""
        flagged: AnyArray = self._flagged > 0
        return flagged

    @property
    def bytes_read(self) -> int:
        """Bytes that were read so far, of rows and of what the index knows of them."""
        return self.reader.bytes_read + self.guide.bytes_read - self._before[0]

    @property
    def hits(self) -> int:
        """How often something had been read before, and was still there."""
        return self.reader.hits + self.guide.hits - self._before[1]

    def _flats_at(self, positions: Ints) -> Flats:
        return flats_of_rows(self.loss, *self.targets_of(positions), self.cap)

    def targets_of(self, positions: Ints) -> tuple[Floats, Floats]:
        """The labels and costs of some rows."""
        o = self.objective
        return o.rows.pick(o.labels, positions), o.rows.pick(o.costs, positions)

    # Which leaves matter.

    def weights(self, place: Place, outer: Place | None) -> Floats:
        """About which share of each leaf's rows matters; zero where surely none does."""
        return self.guide.weights(Question(*place, self.flats, outer))

    def left(self, place: Place, outer: Place | None) -> Floats:
        """About which share of each leaf's rows matters and has not been found; zero where nothing is left."""
        question = Question(*place, self.flats, None if self.exact else outer)
        return np.maximum(self.guide.left(question, self._readings), self._flagged)

    def per_chunk(self, weights: Floats) -> Floats:
        """About how many rows of each chunk matter."""
        sums: Floats = np.add.reduceat(weights * self._sizes, self.index.first_leaves[:-1])
        return sums

    def draw(self, left: Floats, most_bytes: int) -> Ints:
        """Chunks to read next, of so many bytes, at random, the more likely the more rows should matter."""
        weights = self.per_chunk(left)
        chunks = np.flatnonzero(weights > 0)
        chunks = chunks[np.argsort(self._luck[chunks] / weights[chunks], kind="stable")]
        count = int(np.searchsorted(np.cumsum(self.chunk_bytes[chunks]), most_bytes, side="right"))
        return chunks[: max(1, count)]

    def factors(self, weights: Floats) -> Floats:
        """For how many rows one of each chunk stands: one over the probability that the chunk has been read by now."""
        per_chunk = self.per_chunk(weights)
        counts = per_chunk > 0
        read = float(self.chunk_bytes[counts & self.read_chunks].sum())
        sizes, v = self.chunk_bytes[counts].astype(np.float64), per_chunk[counts]
        factors = np.ones(len(per_chunk))
        if not len(v) or read >= sizes.sum():
            return factors
        low, high = 0.0, 1 / v.min()
        while np.sum(sizes * -np.expm1(-v * high)) < read:
            high *= 2
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.sum(sizes * -np.expm1(-v * middle)) < read else (low, middle)
        factors[counts] = 1 / np.maximum(-np.expm1(-v * high), 1e-3)
        return factors

    # Reading.

    def chunks_of(self, positions: Ints) -> Ints:
        """The chunk of each row."""
        found: Ints = np.searchsorted(self.index.rows.chunk_ends, positions, side="right").astype(np.int64)
        return found

    def leaves_of(self, positions: Ints) -> Ints:
        """The leaf of each row."""
        found: Ints = np.searchsorted(self.index.starts, positions, side="right").astype(np.int64) - 1
        return found

    def read(self, chunks: Ints, place: Place) -> Iterator[Found]:
        """The rows of chunks, as they are at this place; the next are read while some are looked at."""
        self._readings.places.append((place[0].copy(), place[1]))
        for found in prefetched(self._rows_of(group) for group in self._groups(np.sort(chunks))):
            yield self._found(*found)
        self.read_chunks[chunks] = True

    def scan(self, chunks: Sequence[int]) -> Found:
        """The rows of chunks, read now."""
        return self._found(*self._rows_of(chunks))

    def _rows_of(self, chunks: Sequence[int]) -> tuple[Ints, Block]:
        return self.index.rows_of(self.reader, chunks)

    def _found(self, positions: Ints, block: Block) -> Found:
        self.looked += len(positions)
        labels, costs = self.targets_of(positions)
        return Found(positions, block, labels, costs, flats_of_rows(self.loss, labels, costs, self.cap))

    def _groups(self, chunks: Ints) -> list[list[int]]:
        if not len(chunks):
            return []
        memory = self.objective.rows.memory
        size = _GROUP if memory is None else max(1, min(_GROUP, memory // _PART))
        numbers = np.cumsum(self.chunk_bytes[chunks]) // size
        return [part.tolist() for part in np.split(chunks, np.flatnonzero(np.diff(numbers)) + 1)]

    def note(self, found: Found, z: Floats, rest: AnyArray) -> None:
        """Keep how far the rows that are not in the active set are from mattering, leaf by leaf."""
        leaves = self.leaves_of(found.positions)
        begins = np.concatenate([[0], np.flatnonzero(np.diff(leaves)) + 1])
        below = np.where(rest, z - found.flats.low, np.inf)
        above = np.where(rest, found.flats.high - z, np.inf)
        self._readings.below[leaves[begins]] = np.minimum.reduceat(below, begins)
        self._readings.above[leaves[begins]] = np.minimum.reduceat(above, begins)
        self._readings.when[leaves[begins]] = len(self._readings.places) - 1
        self._flagged[leaves[begins]] = 0.0

    def drop(self, positions: Ints, below: Floats, above: Floats, place: Place) -> None:
        """Take note of rows that were in the active set and are not any more, so far from mattering at a place."""
        leaves, inverse = np.unique(self.leaves_of(positions), return_inverse=True)
        low, high = np.full(len(leaves), np.inf), np.full(len(leaves), np.inf)
        np.minimum.at(low, inverse, below)
        np.minimum.at(high, inverse, above)
        known = self._readings
        for number in known.numbers(leaves):  # the other rows of these leaves, as far as is known of them at this place
            some = known.when[leaves] == number
            (there, c), which = known.places[number], leaves[some]
            change = self.guide.changes(place[0] - there, place[1] - c, which)
            low[some] = np.minimum(low[some], known.below[which] + change[0])
            high[some] = np.minimum(high[some], known.above[which] - change[1])
        known.places.append((place[0].copy(), place[1]))
        known.below[leaves], known.above[leaves], known.when[leaves] = low, high, len(known.places) - 1

    # What is missing.

    def know(self, active: ActiveSet) -> None:
        """Take note which of the rows that the index has in memory are in the active set."""
        self.guide.know(active.places(self.guide.positions(self.index.starts)) >= 0)

    def estimated_rest(self, place: Place, active: ActiveSet) -> float:
        """What the rows that were not found cost, by the random rows that were not: each stands for others like it.

        Whether a row was found depends on its leaf and its score, and not on whether it is one of the random rows.
        """
        loss = self.objective.loss
        assert isinstance(loss, ScalarLoss)
        stand = (active.guards - 1) * active.costs
        some = stand > 0  # nothing times an infinite loss is no number
        return loss.sum(active.scores(*place)[some], active.labels[some], stand[some])

    def learn(self, point: Point, active: ActiveSet) -> int:
        """Take note of all rows that matter at a point and are not in the active set; in how many leaves they are."""
        o = self.objective
        (counts,) = o.rows.concat(active_of_leaves, point.z, o.labels, o.costs, loss=self.loss).value
        w, b = o.split(point.theta)
        z = active.scores(np.ascontiguousarray(w), float(b))
        low, high = self.loss.sublevel(active.labels, 0.0)
        known = ((z < low) | (z > high)) & (active.costs > 0)
        counts = counts - np.bincount(self.leaves_of(active.positions[known]), minlength=len(counts))
        self._flagged = np.maximum(counts, 0) / self._sizes
        return int(np.count_nonzero(self._flagged))
