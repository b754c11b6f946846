"""LIBSVM files: options, guesses and their correction, several files, streaming, scaling, and what can go wrong."""

from __future__ import annotations

import gzip
import threading
from itertools import pairwise

import numpy as np
import pytest
from libsvm_tools import read, read_streamed, reader, save, threads

from beeline.data.core.block import Block
from beeline.data.core.labels import LabelSets
from beeline.data.reader import NoProgress, RestartReading
from beeline.data.recipe.recipe import Column, Recipe
from beeline.data.recipe.scaling import ScalingLearner
from beeline.exceptions import DataError, FormatError, ParameterError, SourceError

ROWS = b"".join(b"%d 1:%d 3:2.5 7:-1\n" % (i % 3, i) for i in range(5000))


def sets_of(data) -> list[list[float]]:
    assert isinstance(data.labels, LabelSets)
    return [labels.tolist() for labels in data.labels]


class TestIndexBase:
    def test_counts_from_one_unless_an_index_zero_is_seen(self, tmp_path):
        data = read(save(tmp_path, b"1 1:1 4:4\n"))
        assert (data.n_features, data.recipe.index_base, data.block.indices.tolist()) == (4, 1, [0, 3])
        data = read(save(tmp_path, b"1 1:1 4:4\n" * 30 + b"1 0:7\n"), chunk_bytes=16)
        assert (data.n_features, data.recipe.index_base, data.block.indices[:2].tolist()) == (5, 0, [1, 4])

    def test_can_be_said(self, tmp_path):
        data = read(save(tmp_path, b"1 1:1 4:4\n"), zero_based=True)
        assert (data.n_features, data.recipe.index_base, data.block.indices.tolist()) == (5, 0, [1, 4])
        with pytest.raises(FormatError, match="pass zero_based=True") as error:
            read(save(tmp_path, b"1 1:1\n1 0:1\n"), zero_based=False)
        assert (error.value.line, error.value.column) == (2, 3)

    def test_a_late_zero_restarts_the_blocks(self, tmp_path):
        path = save(tmp_path, ROWS + b"1 0:5\n")
        source = reader(path, chunk_bytes=1000)
        source.prepare(200_000)
        blocks = source.blocks(200_000)
        assert next(blocks).indices[0] == 0
        with pytest.raises(RestartReading):
            list(blocks)
        assert next(source.blocks(200_000)).indices[0] == 1
        assert source.recipe.index_base == 0

    def test_an_early_zero_does_not(self, tmp_path):
        source = reader(save(tmp_path, b"1 0:5\n" + ROWS), chunk_bytes=1000)
        source.prepare(200_000)
        assert sum(block.n_rows for block in source.blocks(200_000)) == 5001

    def test_a_bad_line_does_not_decide(self, tmp_path):
        data = read(save(tmp_path, b"1 1:1\n1 0:1 0:1\n"), skip_bad_lines=True)
        assert data.recipe.index_base == 1


class TestLabels:
    def test_sets_are_found_by_a_comma(self, tmp_path):
        data = read(save(tmp_path, b"1 1:1\n1,3,7 1:1\n2:1\n  3:1\n-1.5,2e0\n"), chunk_bytes=4)
        assert sets_of(data) == [[1], [1, 3, 7], [], [], [-1.5, 2]]

    def test_can_be_said(self, tmp_path):
        path = save(tmp_path, b"1 1:1\n2:1\n")
        assert sets_of(read(path, multilabel=True)) == [[1], []]
        with pytest.raises(FormatError, match=r"begins with '2:1' and has no label; pass multilabel=True"):
            read(path, multilabel=False)
        with pytest.raises(FormatError, match=r"several labels, '1,2',.*pass multilabel=True") as error:
            read(save(tmp_path, b"1 1:1\n1,2 1:1\n"), multilabel=False)
        assert (error.value.line, error.value.column) == (2, 1)

    def test_a_line_without_label_is_bad_when_there_is_no_comma(self, tmp_path):
        path = save(tmp_path, ROWS + b"1:1\n" + ROWS)
        for chunk_bytes in (1000, 1 << 18):
            with pytest.raises(FormatError, match="has no label") as error:
                read(path, chunk_bytes)
            assert error.value.line == 5001
        source = reader(path, skip_bad_lines=True)
        assert source.read().n_rows == 10_000
        assert source.bad_lines.count == 1

    def test_and_good_when_there_is_one(self, tmp_path):
        data = read(save(tmp_path, b"1:1\n" + ROWS + b"4,5 1:1\n"), chunk_bytes=5000)
        assert sets_of(data)[:2] == [[], [0]]
        assert sets_of(data)[-1] == [4, 5]

    def test_the_first_bad_line_is_told_under_every_guess(self, tmp_path):
        with pytest.raises(FormatError, match="has no label") as error:
            read(save(tmp_path, b"1:1\n2 x:1\n4,5 1:1\n"))
        assert error.value.line == 1
        with pytest.raises(FormatError, match="'x' is not a whole number") as error:
            read(save(tmp_path, b"1:1\n4,5 1:1\n2 x:1\n"))
        assert error.value.line == 3

    def test_a_late_comma_restarts_the_blocks(self, tmp_path):
        path = save(tmp_path, ROWS + b"4,5 1:1\n")
        source = reader(path, chunk_bytes=1000)
        with pytest.raises(RestartReading):
            list(source.blocks(200_000))
        assert sets_of(read_streamed(path, 200_000, 1000))[-2:] == [[1], [4, 5]]

    def test_lines_may_lack_one_where_none_is_wanted(self, tmp_path):
        path = save(tmp_path, b"1:0.5 3:2\n\n1 2:7\n# x\n4,5 1:1 # y\n3\n" + ROWS + b"1:9\n")
        source = reader(path, chunk_bytes=1000, targets=False)
        blocks = list(source.blocks(200_000))  # in one walk: there is no guess that a comma could correct
        assert len(blocks) > 1
        assert all(block.labels is None for block in blocks)
        assert sum(block.n_rows for block in blocks) == 5005
        assert blocks[0].rows(0, 4).to_dense()[:, :3].tolist() == [[0.5, 0, 2], [0, 7, 0], [1, 0, 0], [0, 0, 0]]
        assert read(path, targets=False).n_rows == 5005

    def test_what_is_said_about_labels_holds_where_none_is_wanted(self, tmp_path):
        with pytest.raises(FormatError, match="has no label"):
            read(save(tmp_path, b"1 1:1\n2:1\n"), targets=False, multilabel=False)
        with pytest.raises(FormatError, match="the label 'x' is not a number"):
            read(save(tmp_path, b"1:1\nx 2:1\n"), targets=False)


class TestQueries:
    def test_are_read(self, tmp_path):
        data = read(save(tmp_path, b"# d:1\n2 qid:10 1:1\n1 qid:10\n0\tqid:123456789012 2:1 # qid:4\n"))
        assert data.queries.tolist() == [10, 10, 123456789012]
        assert read(save(tmp_path, ROWS)).queries is None

    def test_begin_a_line_without_label(self, tmp_path):
        """A row without label and features is told from an empty line by its query id."""
        data = read(save(tmp_path, b"qid:1 1:1\n\nqid:2\n 5 qid:2 3:3\n"), targets=False)
        assert data.block.indptr.tolist() == [0, 1, 1, 2]
        with pytest.raises(FormatError, match="has no query id although rows before it have one"):
            read(save(tmp_path, b"qid:1 1:1\n1:1\n"), targets=False)
        with pytest.raises(FormatError, match="the feature index 'qid' is not a whole number"):
            read(save(tmp_path, b"5 qid:1 1:1\n1:1 qid:1 2:2\n"), targets=False)

    @pytest.mark.parametrize("chunk_bytes", [5, 1 << 18])
    def test_rows_must_agree(self, tmp_path, chunk_bytes):
        with pytest.raises(FormatError, match="has no query id although rows before it have one") as error:
            read(save(tmp_path, b"1 qid:1 1:1\n1 qid:2\n1 1:1\n1 1:1\n"), chunk_bytes)
        assert (error.value.line, error.value.column) == (3, 3)
        with pytest.raises(FormatError, match="has the query id 'qid:2' although rows before it have none") as error:
            read(save(tmp_path, b"1 1:1\n1\n1 qid:2 1:1\n1 1:1\n"), chunk_bytes)
        assert (error.value.line, error.value.column) == (3, 3)

    @pytest.mark.parametrize("query", [b"", b"-", b"-1", b"+1", b"1.5", b"x", b"1:1", b"1000000000000000000"])
    def test_are_whole_numbers(self, tmp_path, query):
        with pytest.raises(FormatError, match="is not a query id") as error:
            read(save(tmp_path, b"1 qid:1 1:1\n1 qid:" + query + b" 1:1\n"))
        assert (error.value.line, error.value.column) == (2, 3)

    def test_files_must_agree(self, tmp_path):
        paths = [save(tmp_path, b"1 1:1\n", "a.svm"), save(tmp_path, b"\n1 qid:1 1:1\n", "b.svm")]
        with pytest.raises(FormatError, match="although rows before it have none") as error:
            read(paths)
        assert (error.value.file, error.value.line) == (str(paths[1]), 2)


class TestSizes:
    def test_indices_beyond_31_bits(self, tmp_path):
        data = read(save(tmp_path, ROWS + b"1 2147483647:1 2147483648:2\n"), chunk_bytes=1000)
        assert (data.block.indices.dtype, data.n_features) == (np.int32, 2**31)
        data = read(save(tmp_path, ROWS + b"1 2147483649:2 999999999999999999:3\n"), chunk_bytes=1000)
        assert (data.block.indices.dtype, data.n_features) == (np.int64, 10**18 - 1)
        assert data.block.indices[-2:].tolist() == [2**31, 10**18 - 2]
        assert data.block.indices[:3].tolist() == [0, 2, 6]

    def test_a_line_of_many_megabytes(self, tmp_path):
        n = 2_000_000
        long = b"3 " + b" ".join(b"%d:%d" % (j, j % 1000) for j in range(1, n + 1))
        assert len(long) > 1 << 24
        data = read(save(tmp_path, ROWS + long + b"\n" + ROWS))
        assert np.diff(data.block.indptr)[[4999, 5000, 5001]].tolist() == [3, n, 3]
        assert data.block.values[15000 : 15000 + n].tolist() == [j % 1000 for j in range(1, n + 1)]
        assert data.block.indices[15000 : 15000 + n].tolist() == list(range(n))
        with pytest.raises(FormatError, match="the feature index '3' is smaller") as error:
            read(save(tmp_path, ROWS + long + b" 3:x\n" + ROWS))
        assert (error.value.line, error.value.column) == (5001, len(long) + 2)

    def test_the_number_of_features_can_be_said(self, tmp_path):
        path = save(tmp_path, b"1 1:1 3:3\n")
        assert read(path, n_features=10).n_features == 10
        with pytest.raises(FormatError, match="the feature index '3' lies beyond the 2 features") as error:
            read(path, n_features=2)
        assert (error.value.line, error.value.column) == (1, 7)
        with pytest.raises(FormatError, match="the feature index '3' lies beyond the 3 features"):
            read(path, n_features=3, zero_based=True)

    def test_rows_without_features(self, tmp_path):
        data = read(save(tmp_path, b"1\n2\n"))
        assert (data.n_rows, data.n_features, data.nnz) == (2, 0, 0)
        assert read(save(tmp_path, b"1\n2\n"), layout="dense").block.values.shape == (2, 0)


class TestFiles:
    def test_are_read_one_after_the_other(self, tmp_path):
        parts = [b"1 1:1\n2 2:2", b"", b"3 3:3\r\n", b"# no row"]
        paths = [save(tmp_path, part, f"{i}.svm{'.gz' if i % 2 else ''}") for i, part in enumerate(parts)]
        for data in (read(paths), read(tmp_path), read_streamed(paths, 1000, 1)):
            assert data.labels.tolist() == [1, 2, 3]
            assert data.block.indptr.tolist() == [0, 1, 2, 3]

    def test_errors_name_the_right_one(self, tmp_path):
        paths = [save(tmp_path, ROWS, "a.svm"), save(tmp_path, b"1 1:1\n1 2\n", "b.svm"), save(tmp_path, b"x", "c.svm")]
        for read_it in (read, lambda p: read_streamed(p, 100_000, 1000)):
            with pytest.raises(FormatError) as error:
                read_it(paths)
            assert (error.value.file, error.value.line, error.value.column) == (str(paths[1]), 2, 3)

    @pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
    def test_that_vanish_or_shrink_are_an_error(self, tmp_path, name):
        path = save(tmp_path, ROWS, name)
        shrunk, gone = reader(path), reader(path)
        path.write_bytes(path.read_bytes()[:-700])
        with pytest.raises(SourceError, match=f"{path}: cannot be read"):
            shrunk.read()
        path.unlink()
        with pytest.raises(SourceError, match=f"{path}: cannot be read.*No such file"):
            gone.read()

    def test_that_are_no_regular_files_are_refused(self):
        with pytest.raises(SourceError, match="/dev/null: is not a regular file"):
            read("/dev/null")

    def test_a_stopped_walk_leaves_no_thread(self, tmp_path):
        rng = np.random.default_rng(0)
        text = b"".join(b"%d 1:%d\n" % (i % 3, x) for i, x in enumerate(rng.integers(0, 10**9, 300_000)))
        blocks = reader(save(tmp_path, text, "a.svm.gz")).blocks(1_000_000)
        next(blocks)
        assert any(t.name == "beeline-read-ahead" for t in threading.enumerate())
        blocks.close()
        assert not any(t.name == "beeline-read-ahead" for t in threading.enumerate())

    def test_progress_tells_all_bytes_and_rows(self, tmp_path):
        class Progress(NoProgress):
            def start(self, stage, total_bytes):
                self.stage, self.total, self.bytes, self.rows = stage, total_bytes, 0, 0

            def advance(self, n_bytes, n_rows=0):
                self.bytes += n_bytes
                self.rows += n_rows

        paths = [save(tmp_path, ROWS, "a.svm"), save(tmp_path, ROWS, "b.svm.gz")]
        for walk in (lambda s: s.read(), lambda s: list(s.blocks(200_000))):
            source = reader(paths, chunk_bytes=10_000)
            source.progress = progress = Progress()
            walk(source)
            assert progress.bytes == progress.total == sum(path.stat().st_size for path in paths)
            assert (progress.stage, progress.rows) == ("reading", 10_000)


class TestStreaming:
    def test_blocks_keep_to_the_memory(self, tmp_path):
        path = save(tmp_path, ROWS * 20)
        memory = 1 << 20
        for name in (path, save(tmp_path, ROWS * 20, "a.svm.gz")):
            blocks = list(reader(name, chunk_bytes=10_000).blocks(memory))
            assert len(blocks) > 5
            assert max(block.nbytes for block in blocks) <= memory // 2
            # Blocks are not much smaller than they may be, either.
            assert all(block.nbytes > memory // 4 for block in blocks[:-1])
            assert sum(block.n_rows for block in blocks) == 100_000

    def test_dense_blocks_keep_to_it_too(self, tmp_path):
        path = save(tmp_path, ROWS + b"1 2000:1\n")
        source = reader(path, layout="dense", chunk_bytes=10_000)
        source.prepare(1 << 20)
        blocks = list(source.blocks(1 << 20))
        assert {block.n_features for block in blocks} == {2000}
        assert max(block.nbytes for block in blocks) <= 1 << 19
        assert sum(block.n_rows for block in blocks) == 5001

    def test_a_line_larger_than_the_memory(self, tmp_path):
        long = b"1 " + b" ".join(b"%d:1" % j for j in range(1, 100_000)) + b"\n"
        data = read_streamed(save(tmp_path, ROWS + long + ROWS), 100_000, 1000)
        assert (data.n_rows, data.nnz) == (10_001, 30_000 + 99_999)

    def test_blocks_do_not_depend_on_threads(self, tmp_path):
        path = save(tmp_path, ROWS + b"# a:b\n" * 300 + ROWS)

        def cut():
            return [block.n_rows for block in reader(path, chunk_bytes=999).blocks(150_000)]

        with threads(1):
            alone = cut()
        with threads(4):
            assert cut() == alone

    def test_bad_lines_are_counted_and_the_first_ten_kept(self, tmp_path):
        text = b"".join(b"1 1:1\n1 %d:x\n" % (i + 1) for i in range(500))
        path = save(tmp_path, text)
        for n_threads in (1, 4):
            for walk in (lambda s: s.read().n_rows, lambda s: sum(b.n_rows for b in s.blocks(50_000))):
                source = reader(path, chunk_bytes=100, skip_bad_lines=True)
                with threads(n_threads):
                    assert walk(source) == 500
                assert source.bad_lines.count == 500
                lines = [int(e.split("line ")[1].split(",")[0]) for e in source.bad_lines.examples]
                assert lines == list(range(2, 22, 2))


class TestMaking:
    @pytest.mark.parametrize("kind", ["minmax", "standard", "maxabs", "unit-norm"])
    @pytest.mark.parametrize("layout", ["auto", "dense"])
    def test_scaling(self, tmp_path, kind, layout):
        path = save(tmp_path, ROWS + b"1 0:3 9:9\n")  # the zero comes late
        plain = read(path).block
        learner = ScalingLearner(kind)
        learner.add(plain)
        expected = learner.finish(10).apply(plain).to_dense()
        for data in (
            read(path, scale=kind, layout=layout),
            read_streamed(path, 300_000, 999, scale=kind, layout=layout),
        ):
            np.testing.assert_allclose(data.block.to_dense(), expected, rtol=1e-12, atol=1e-12)
            assert data.recipe.scaling.kind == kind
            assert data.n_features == 10
            assert data.block.is_sparse == (layout == "auto" and kind in ("maxabs", "unit-norm"))

    def test_no_more_walks_than_needed(self, tmp_path):
        class Stages(NoProgress):
            def __init__(self):
                self.stages = []

            def start(self, stage, total_bytes):
                self.stages.append(stage)

        path = save(tmp_path, ROWS)
        for options, stages in [
            ({}, ["reading"]),
            ({"scale": "unit-norm"}, ["reading"]),
            ({"scale": "standard"}, ["learning the scaling", "reading"]),
            ({"layout": "dense"}, ["counting features", "reading"]),
            ({"layout": "dense", "n_features": 7}, ["reading"]),
        ]:
            source = reader(path, **options)
            source.progress = progress = Stages()
            source.read()
            assert progress.stages == stages

    def test_dense(self, tmp_path):
        data = read(save(tmp_path, b"1 2:5\n2 1:-1 3:4\n"), layout="dense", dtype="float32")
        assert data.block.values.tolist() == [[0, 5, 0], [-1, 0, 4]]
        assert data.block.values.dtype == np.float32

    def test_by_a_recipe(self, tmp_path):
        path = save(tmp_path, b"1 0:2 3:4\n2 1:8 2:3\n")
        recipe = read(path, scale="maxabs").recipe
        data = read(save(tmp_path, b"1 1:8 2:1.5\n"), recipe=recipe)
        assert data.recipe is recipe
        assert data.block.to_dense().tolist() == [[0, 1, 0.5, 0]]
        with pytest.raises(FormatError, match="the feature index '4' lies beyond the 4 features") as error:
            read(save(tmp_path, b"1 4:8\n"), recipe=recipe)
        assert (error.value.line, error.value.column) == (1, 3)

    def test_a_recipe_contradicted(self, tmp_path):
        path = save(tmp_path, b"1 1:1\n")
        recipe = Recipe(n_features=3, index_base=1)
        with pytest.raises(ParameterError, match="zero_based=True contradicts the recipe"):
            reader(path, recipe=recipe, zero_based=True)
        with pytest.raises(ParameterError, match="n_features=4 contradicts the recipe"):
            reader(path, recipe=recipe, n_features=4)
        with pytest.raises(ParameterError, match="leave one of them out"):
            reader(path, recipe=recipe, scale="maxabs")
        with pytest.raises(DataError, match="for a table with named columns"):
            reader(path, recipe=Recipe(n_features=1, columns=(Column("a", "numeric", 0),)))

    @pytest.mark.parametrize(
        "option",
        [
            {"label": "y"},
            {"weight": "w"},
            {"query": "q"},
            {"ignore": ("a",)},
            {"text": ("a",)},
            {"delimiter": ";"},
            {"missing": "zero"},
        ],
    )
    def test_options_of_tables_are_refused(self, tmp_path, option):
        with pytest.raises(ParameterError, match=f"{next(iter(option))} has no meaning for LIBSVM text"):
            reader(save(tmp_path, ROWS), **option)


def test_arrays_are_large_enough_and_their_own(tmp_path):
    path = save(tmp_path, ROWS * 60)
    blocks = [read(path).block for _ in range(3)]
    addresses = sorted((b.values.ctypes.data, b.values.nbytes) for b in blocks)
    assert all(a + size <= b for (a, size), (b, _) in pairwise(addresses))
    for block in blocks:
        assert isinstance(block.checked(), Block)
        block.values[:] = 0  # written to, to the last element
        block.indices[-1] = 0


def test_gzip_members_are_joined(tmp_path):
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n2 2:") + gzip.compress(b"2\n"))
    assert read(path).block.values.tolist() == [1, 2]
