"""Sparse matrices in all formats, and what turns one into another. Structure is NumPy's, elements are the judge's."""

import importlib

import numpy as np

from case import Case

LISTED = ["csr", "csc", "coo"]


def library(xp):
    return importlib.import_module("scipy.sparse" if xp is np else "cupyx.scipy.sparse")


def extents(random, count):
    return [int(n) for n in random.choice([1, 2, 7, 33, 64, 130], count)]


def structure(random, rows, columns):
    """Places of a matrix of which some rows are empty, and one may be full."""
    density = random.choice([0.02, 0.1, 0.5])
    places = random.uniform(size=(rows, columns)) < density
    if random.integers(3) == 0:
        places[random.integers(rows)] = True
    return places


def offsets(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def sliced(begin, index, value, rows_of_a_slice):
    """Rows in sliced ELL form: where slices begin, and columns and values with their padding."""
    lengths = np.diff(begin)
    widths = [max(lengths[first : first + rows_of_a_slice]) for first in range(0, len(lengths), rows_of_a_slice)]
    slices = offsets(np.array(widths) * rows_of_a_slice)
    columns, values = np.full(slices[-1], -1), np.zeros(slices[-1], value.dtype)
    for row, length in enumerate(lengths):
        places = slices[row // rows_of_a_slice] + np.arange(length) * rows_of_a_slice + row % rows_of_a_slice
        columns[places], values[places] = (part[begin[row] : begin[row + 1]] for part in (index, value))
    return slices, columns, values


def in_blocks(full, block):
    """The elements by block row, row in the block, block column and column in the block; zeros fill the last ones."""
    rows, columns = (-(-extent // block) for extent in full.shape)
    padded = np.zeros((rows * block, columns * block), full.dtype)
    padded[: full.shape[0], : full.shape[1]] = full
    return padded.reshape(rows, block, columns, block)


class SparseCase(Case):
    def __init__(self, xp, random, name, dtype, call=None):
        super().__init__(xp, random, f"sparse.{name}", call or name, dtype)
        self.indices = self.choose("indices", ["i32", "i64"])

    def add_parts(self, name, begin, index, value):
        self.add(f"{name}_begin", begin, self.indices)
        self.add(f"{name}_index", index, self.indices)
        self.add(f"{name}_value", value)

    def listed(self, name, places, form="csr", any_order=False, tame=None, repeated=False):
        """Adds a matrix by rows, by columns or by coordinates, with elements at `places`, and gives it as a dense
        array. The indices of a row (column) ascend or stand in any order. `tame`: what makes values of the rows,
        the columns and random numbers. `repeated`: some places occur more than once, and count as their sum."""
        outer, index = np.nonzero(places.T if form == "csc" else places)
        if any_order:
            index = index[np.lexsort((self.random.uniform(size=len(index)), outer))]
        if repeated and len(index):
            again = np.sort(np.append(np.arange(len(index)), self.random.integers(0, len(index), 1 + len(index) // 3)))
            outer, index = outer[again], index[again]
        where = (index, outer) if form == "csc" else (outer, index)
        values = self.numbers(len(index))
        self.arguments.update({name: list(places.shape), f"{name}_format": str(form)})
        groups = places.shape[1] if form == "csc" else places.shape[0]
        begin = outer if form == "coo" else offsets(np.bincount(outer, minlength=groups))
        self.add_parts(name, begin, index, tame(*where, values) if tame else values)
        full = np.zeros(places.shape, values.dtype)
        np.add.at(full, where, self.host(self.flat(f"{name}_value")))
        return self.xp.array(full)

    def csr(self, name, places, any_order=False, repeated=False):
        return self.listed(name, places, "csr", any_order, repeated=repeated)

    def sell(self, name, places, tame=None):
        rows, index = np.nonzero(places)
        begin = offsets(places.sum(axis=1))
        height = int(self.random.choice([1, 2, 4, 32]))
        self.arguments.update({name: list(places.shape), f"{name}_format": "sell", f"{name}_slice": height,
                               f"{name}_nonzeros": len(index)})
        numbered = sliced(begin, index, np.arange(1, len(index) + 1), height)
        stored = numbered[2] > 0
        values = np.where(stored, self.numbers(len(stored)), 0)
        if tame:
            values[stored] = tame(rows[numbered[2][stored] - 1], index[numbered[2][stored] - 1], values[stored])
        self.add_parts(name, *numbered[:2], values)
        full = self.xp.zeros(places.shape, values.dtype)
        order = np.argsort(numbered[2], kind="stable")[len(values) - len(index) :]
        full[self.xp.array(rows), self.xp.array(index)] = self.flat(f"{name}_value")[self.xp.array(order)]
        return full

    def blocks(self):
        """A block's extent, and in which blocks a matrix has elements."""
        block_rows, block_columns = self.random.choice([1, 2, 7, 16], 2)
        return int(self.random.choice([1, 2, 3, 8])), structure(self.random, block_rows, block_columns)

    def bsr(self, name, any_order=False):
        block, places = self.blocks()
        rows, index = np.nonzero(places)
        if any_order:
            index = index[np.lexsort((self.random.uniform(size=len(index)), rows))]
        self.arguments.update({name: list(places.shape), f"{name}_format": "bsr", f"{name}_block": block})
        by_columns = self.choose(f"{name}_order", ["row", "column"]) == "column"
        self.add_parts(name, offsets(places.sum(axis=1)), index, self.numbers(len(index) * block * block))
        values = self.flat(f"{name}_value").reshape(-1, block, block)
        return self.of_blocks(places.shape, block, rows, index, values.swapaxes(1, 2) if by_columns else values)

    def blocked_ell(self, name, any_order=False):
        """What stands in the padding does not count."""
        block, places = self.blocks()
        rows, index = np.nonzero(places)
        if any_order:
            index = index[np.lexsort((self.random.uniform(size=len(index)), rows))]
        widths, begin = places.sum(axis=1), offsets(places.sum(axis=1))
        width = int(max(widths)) + int(self.random.integers(2))
        number = np.arange(len(rows)) - begin[rows]
        column = np.full((len(places), width), -1)
        column[rows, number] = index
        self.arguments.update({name: [extent * block for extent in places.shape], f"{name}_format": "blocked_ell",
                               f"{name}_block": block, f"{name}_width": width})
        self.add(f"{name}_index", column.flatten(), self.indices)
        self.add(f"{name}_value", self.numbers(len(places) * block * width * block))
        values = self.flat(f"{name}_value").reshape(len(places), block, width, block).transpose(0, 2, 1, 3)
        of_elements = values[self.xp.array(rows), self.xp.array(number)]
        return self.of_blocks(places.shape, block, rows, index, of_elements)

    def of_blocks(self, shape, block, rows, columns, values):
        full = self.xp.zeros((shape[0], shape[1], block, block), values.dtype)
        full[self.xp.array(rows), self.xp.array(columns)] = values
        return full.transpose(0, 2, 1, 3).reshape(shape[0] * block, shape[1] * block)

    def in_format(self, name, form, any_order=False):
        """Adds a random matrix in that format, and gives it as a dense array."""
        if form == "bsr":
            return self.bsr(name, any_order)
        if form == "blocked_ell":
            return self.blocked_ell(name, any_order)
        places = structure(self.random, *extents(self.random, 2))
        return self.sell(name, places) if form == "sell" else self.listed(name, places, form, any_order)

    def elements_of(self, name, full):
        """What stands in `full` where a matrix by rows or in blocks has elements, in their order."""
        begin, index = (self.host(self.flat(f"{name}_{part}")) for part in ("begin", "index"))
        rows, block = np.repeat(np.arange(len(begin) - 1), np.diff(begin)), self.arguments.get(f"{name}_block", 1)
        elements = full.reshape(len(begin) - 1, block, -1, block).transpose(0, 2, 1, 3)
        elements = elements[self.xp.array(rows), self.xp.array(index)]
        by_columns = self.arguments.get(f"{name}_order") == "column"
        return (elements.swapaxes(1, 2) if by_columns else elements).flatten()

    def sparse(self, full):
        return library(self.xp).csr_matrix(full)

    def written(self, name, numbers, room=0, terms=None):
        """An array that the call writes: it becomes `numbers`, and `room` elements behind them stay as they are. If
        the room is negative so many elements are missing, and all of them stay. `terms`: as for expect(); without
        them the numbers are exact."""
        of_values = name.endswith("_value")
        count = max(0, len(numbers) + room)
        self.add(name, self.numbers(count) if of_values else np.full(count, -7), None if of_values else self.indices)
        flat = self.host(self.flat(name)).copy()
        if room >= 0:
            flat[: len(numbers)] = self.host(numbers)
        self.expect_flat(name, flat, terms or 1)
        if terms is None:
            self.now_exact()

    def now_exact(self):
        """What is expected last may not be off at all."""
        self.expected[-1] = (*self.expected[-1][:2], 0)

    def room(self):
        """How many elements more than needed there is room for; None: no array at all, the call only counts. What
        does not fit is reported, and no error."""
        spare = self.random.choice([0, 3, -1, None])
        if spare in (-1, None):
            self.arguments["report"] = True
        return spare

    def counted(self, count):
        self.add("count", [-7], "i64")
        self.expect_flat("count", np.array([count]))

    def written_with_room(self, name, parts, count, terms=None):
        """Arrays that the call writes if there is room for `count`, which it answers. `parts`: their numbers, and
        how many of them each of the counted takes."""
        self.counted(count)
        spare = self.room()
        if spare is None:
            self.arguments["without"] = [f"{name}_{part}" for part in parts]
            return
        for part, (numbers, each) in parts.items():
            self.written(f"{name}_{part}", numbers, max(spare, -count) * each, terms if part == "value" else None)

    def becomes_csr(self, name, places, full, terms=None, counts=False):
        """A matrix that the call writes: `full`, with elements at `places`. `counts`: the call answers their number,
        and there may be more room than needed, or less."""
        self.arguments[name] = list(places.shape)
        self.written(f"{name}_begin", offsets(places.sum(axis=1)))
        index, value = np.nonzero(places)[1], self.host(full)[places]
        if counts:
            return self.written_with_room(name, {"index": (index, 1), "value": (value, 1)}, len(index), terms)
        self.written(f"{name}_index", index)
        self.written(f"{name}_value", value, terms=terms)

    def dense(self, name, rows, columns, order_name, values=None, of=None):
        """Adds a matrix, by columns or by rows, and gives it. `of`: its dtype, where it has one of its own."""
        by_rows = self.choose(order_name, ["column", "row"]) == "row"
        shape = (columns, rows) if by_rows else (rows, columns)
        self.matrix(name, *shape, values=values.T if by_rows and values is not None else values, dtype=of)
        return self.get(name).T if by_rows else self.get(name)

    def dense_becomes(self, name, value, order_name, terms):
        self.expect(name, value.T if self.arguments[order_name] == "row" else value, terms)


def of_dense(xp, random, dtype):
    for form in LISTED:
        case = SparseCase(xp, random, "sparse_to_dense", dtype)
        full = case.listed("a", structure(random, *extents(random, 2)), form, True, repeated=True)
        case.dense("d", *full.shape, "order_d")
        case.dense_becomes("d", full, "order_d", 4)
        yield case

    for form in LISTED + ["blocked_ell"]:
        operation = "blocked_ell_to_dense" if form == "blocked_ell" else "sparse_to_dense"
        case = SparseCase(xp, random, operation, dtype)
        full = case.in_format("a", form)
        case.dense("d", *full.shape, "order_d")
        case.dense_becomes("d", full, "order_d", 1)
        case.now_exact()
        yield case

    for form in LISTED:
        rows, columns = extents(random, 2)
        case = SparseCase(xp, random, "dense_to_sparse", dtype)
        places = structure(random, rows, columns)
        # Zeros of either sign are none of its elements.
        zeros = np.where(random.integers(2, size=places.shape), 0.0, -0.0)
        full = case.host(case.dense("d", rows, columns, "order_d",
                                    np.where(places, case.numbers(places.size).reshape(places.shape), zeros)))
        case.arguments.update(a=[rows, columns], a_format=form)
        outer, index = np.nonzero(places.T if form == "csc" else places)
        value = (full.T if form == "csc" else full)[places.T if form == "csc" else places]
        parts = {"index": (index, 1), "value": (value, 1)}
        if form == "coo":
            parts["begin"] = (outer, 1)
        else:
            case.written("a_begin", offsets(np.bincount(outer, minlength=columns if form == "csc" else rows)))
        case.written_with_room("a", parts, len(index))
        yield case


def of_blocks(xp, random, dtype):
    rows, columns = extents(random, 2)
    case = SparseCase(xp, random, "csr2bsr", dtype)
    places, block = structure(random, rows, columns), int(random.choice([1, 2, 3, 8]))
    repeated = bool(random.integers(2))
    elements = in_blocks(case.host(case.csr("a", places, any_order=True, repeated=repeated)), block)
    there = in_blocks(places, block).any(axis=(1, 3))
    values = elements.transpose(0, 2, 1, 3)[there]
    case.arguments.update(b=list(there.shape), b_block=block)
    if case.choose("b_order", ["row", "column"]) == "column":
        values = values.swapaxes(1, 2)
    case.written("b_begin", offsets(there.sum(axis=1)))
    index = np.nonzero(there)[1]
    parts = {"index": (index, 1), "value": (values.flatten(), block * block)}
    case.written_with_room("b", parts, len(index), 4 if repeated else None)
    yield case

    case = SparseCase(xp, random, "bsr2csr", dtype)
    full = case.host(case.bsr("a", any_order=True))
    block = case.arguments["a_block"]
    begin, index = (case.host(case.flat(f"a_{part}")) for part in ("begin", "index"))
    of_rows = [np.repeat(index[first:last], block) * block + np.tile(np.arange(block), last - first)
               for first, last in zip(begin, begin[1:]) for _ in range(block)]
    case.arguments["b"] = list(full.shape)
    case.written("b_begin", offsets([len(row) for row in of_rows]))
    case.written("b_index", np.concatenate(of_rows))
    case.written("b_value", np.concatenate([full[i, row] for i, row in enumerate(of_rows)]))
    yield case

    case = SparseCase(xp, random, "csr2blocked_ell", dtype)
    block, coarse = case.blocks()
    places = structure(random, *(extent * block for extent in coarse.shape))
    repeated = bool(random.integers(2))
    elements = in_blocks(case.host(case.csr("a", places, any_order=True, repeated=repeated)), block)
    there = in_blocks(places, block).any(axis=(1, 3))
    width, spare = int(max(there.sum(axis=1))), case.room()
    case.counted(width)
    capacity = 0 if spare is None else max(0, width + spare)
    case.arguments.update(b=list(places.shape), b_block=block, b_width=capacity)
    if spare is None:
        case.arguments["without"] = ["b_index", "b_value"]
    elif capacity < width:
        case.written("b_index", np.zeros(len(there) * width), -len(there) * (width - capacity))
        case.written("b_value", np.zeros(len(places) * width * block), -len(places) * block * (width - capacity))
    else:
        column = np.full((len(there), capacity), -1)
        value = np.zeros((len(there), block, capacity, block), elements.dtype)
        for i, row in enumerate(there):
            column[i, : row.sum()] = np.nonzero(row)[0]
            value[i][:, : row.sum()] = elements[i][:, row]
        case.written("b_index", column.flatten())
        case.written("b_value", value.flatten(), terms=4 if repeated else None)
    yield case


def of_slices(xp, random, dtype):
    case = SparseCase(xp, random, "csr2sell", dtype)
    places = structure(random, *extents(random, 2))
    case.csr("a", places, any_order=True)
    height = int(random.choice([1, 2, 4, 32]))
    rows = [case.host(case.flat(f"a_{part}")) for part in ("begin", "index", "value")]
    slices, columns, values = sliced(*rows, height)
    case.arguments.update(b=list(places.shape), b_slice=height, b_nonzeros=int(places.sum()))
    case.written("b_begin", slices)
    case.written_with_room("b", {"index": (columns, 1), "value": (values, 1)}, len(columns))
    yield case


def sorts(xp, random, dtype):
    for call in ("coosort", "csrsort"):
        rows, columns, count = extents(random, 3)
        case = SparseCase(xp, random, call, dtype)
        row, column = random.integers(0, rows, count), random.integers(0, columns, count)  # places may come twice
        if call == "csrsort":
            row = np.sort(row)
        begin = row if call == "coosort" else offsets(np.bincount(row, minlength=rows))
        case.arguments.update(a=[rows, columns], without=[])
        case.add_parts("a", begin, column, case.numbers(count))
        by_columns = call == "coosort" and case.choose("by", ["row", "column"]) == "column"
        order = np.lexsort((row, column) if by_columns else (column, row))
        if call == "coosort":
            case.written("t_begin", row[order])
        case.written("t_index", column[order])
        if random.integers(3):
            case.written("t_value", case.host(case.flat("a_value"))[order])
        else:
            case.arguments["without"] += ["a_value", "t_value"]
        if random.integers(3):
            case.written("permutation", order)
        else:
            case.arguments["without"].append("permutation")
        yield case


def rows_of_elements(xp, random, dtype):
    for call in ("csr2coo", "coo2csr"):
        rows, columns = extents(random, 2)
        places = structure(random, rows, columns)
        case = Case(xp, random, f"sparse.{call}", call, dtype)
        row, begin = np.nonzero(places)[0], offsets(places.sum(axis=1))
        for name, numbers, written in (("row", row, "csr2coo"), ("begin", begin, "coo2csr")):
            case.add(name, np.full(len(numbers), -7) if call == written else numbers)
            if call == written:
                case.expect_flat(name, numbers)
        yield case


def first_fault(begin, index, columns):
    """What sparse.examine says of a CSR matrix whose columns are to ascend: the fault, where, what stands there and,
    for faults of order, in front of it."""
    wrong = [(0, 0, 0, 0)] if not len(begin) else []
    for i, here in enumerate(begin):
        if i == 0 and here != 0:
            wrong.append((1, i, here, 0))
        if i > 0 and here < begin[i - 1]:
            wrong.append((3, i, here, begin[i - 1]))
        if i == len(begin) - 1 and here != len(index):
            wrong.append((4, i, here, 0))
    for k, here in enumerate(index):
        if not 0 <= here < columns:
            wrong.append((6, k, here, 0))
        elif k > 0 and here <= index[k - 1] and k not in begin:
            wrong.append((7, k, here, index[k - 1]))
    return min(wrong, default=(0, 0, 0, 0))


def examinations(xp, random, dtype):
    for changes in range(4):
        rows, columns = extents(random, 2)
        places = structure(random, rows, columns)
        begin, index = offsets(places.sum(axis=1)), np.nonzero(places)[1]
        for _ in range(changes):
            array = begin if random.integers(2) or not len(index) else index
            array[random.integers(len(array))] += random.choice([-9, -1, 1, 9])
        case = Case(xp, random, "sparse.examine", "examine", dtype, a=[rows, columns])
        case.add("begin", begin)
        case.add("index", index)
        case.add("found", [-7] * 4, "i64")
        case.expect_flat("found", np.array(first_fault(begin, index, columns)))
        yield case
