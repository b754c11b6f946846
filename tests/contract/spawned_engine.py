"""An engine whose shards lie in another process: all that crosses is pickled, counted and looked at."""

from __future__ import annotations

import io
import multiprocessing as mp
import pickle

import numpy as np

from beeline import ArrayDataset
from beeline.engines import Engine
from beeline.engines.queued import QueuedRows, ShardHolder
from beeline.engines.threads import shards_of


class Spawned(Engine):
    """Opens data in a process of its own, in so many shards.

    Attributes
    ----------
    crossed
        The shapes of all arrays that went there or came back by verbs.
    moved
        Those of whole columns that were scattered or gathered.
    """

    def __init__(self, n_shards=None, memory=256 << 20):
        self.n_shards, self.memory = n_shards, memory
        self.crossed, self.moved = [], []
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        self.opened = 0

    def open(self, data, groups=None):
        self.opened += 1
        return SpawnedRows(self, self.opened, data, groups)

    def ask(self, seen, *question):
        self.pipe.send_bytes(_pickled(question, seen))
        answer = pickle.loads(self.pipe.recv_bytes())
        _pickled(answer, seen)
        return answer

    def close(self):
        self.pipe.close()
        self.process.join(10)


class SpawnedRows(QueuedRows):
    """Rows of one data set there."""

    def __init__(self, engine, number, data, groups):
        super().__init__()
        self.engine, self.number = engine, number
        self.n_rows, self.n_features, self.nnz = data.n_rows, data.n_features, data.nnz
        self.in_memory = isinstance(data, ArrayDataset)
        self.n_shards = engine.ask([], "open", number, data, engine.memory, engine.n_shards, groups)

    def _send(self, batch):
        for command in batch.commands:
            _pickled(pickle.loads(command.small), self.engine.crossed)
        return self.engine.ask(self.engine.crossed, "answer", self.number, batch)

    def _put(self, key, column):
        self.engine.ask(self.engine.moved, "put", self.number, key, np.ascontiguousarray(column))

    def _get(self, key):
        return np.concatenate(self.engine.ask(self.engine.moved, "get", self.number, key))

    def read(self, start, stop):
        raise AssertionError("nobody may ask for rows that lie elsewhere")

    def local(self, features=None, *, constant=False):
        raise AssertionError("nobody may ask for rows that lie elsewhere")


def _pickled(thing, seen):
    """The bytes; `seen` gets the shape of every array in them."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, -1)
    pickler.dispatch_table = {np.ndarray: lambda array: (seen.append(array.shape), array.__reduce_ex__(2))[1]}
    pickler.dump(thing)
    return buffer.getvalue()


def _serve(pipe):
    holders = {}
    while True:
        try:
            name, number, *arguments = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        if name == "open":
            holders[number] = ShardHolder(shards_of(*arguments))
            answer = len(holders[number].shards)
        else:
            answer = getattr(holders[number], name)(*arguments)
        pipe.send_bytes(pickle.dumps(answer, -1))
