"""The placement of pipeline registers: parts of comparisons, and trees of gates."""

from hypothesis import given, strategies as st

from splitjoin.circuit.schedule import Gate, PipelineRegisters, Schedule, additions, arranged, parts

leaves = st.integers(0, 40)
trees = st.recursive(leaves, lambda inner: st.builds(
    lambda op, args: (op, *args), st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=9)))


def value(node, held):
    if isinstance(node, int):
        return node in held
    op, args = (node.op, node.inputs) if isinstance(node, Gate) else (node[0], node[1:])
    return (all if op == "and" else any)(value(a, held) for a in args)


def gates(node):
    if isinstance(node, Gate):
        yield node
        for part in node.inputs:
            yield from gates(part)


@given(trees, st.integers(0, 4), st.sets(leaves), st.lists(st.integers(1, 2), min_size=41, max_size=41))
def test_an_arranged_tree_is_the_tree(tree, levels, held, signals):
    root = arranged(tree, levels, signals)
    assert value(root, held) == value(tree, held)
    for gate in gates(root):
        if not levels:
            assert gate.stage == 0
            continue
        assert len(gate.inputs) >= 2 and 1 <= gate.depth <= levels
        # What is made of two comparisons may be more than a LUT4 takes only where there are but two of them.
        assert sum(signals[p] if isinstance(p, int) else 1 for p in gate.inputs) <= 4
        for part in gate.inputs:
            if isinstance(part, Gate):
                assert part.stage < gate.stage or (part.stage == gate.stage and part.depth < gate.depth)


def test_trees_are_as_shallow_as_gates_of_four_make_them():
    for tests, levels, stages in ((16, 2, 1), (16, 1, 2), (17, 2, 2), (64, 3, 1), (64, 1, 3), (4, 1, 1)):
        root = arranged(("and", *range(tests)), levels, [1] * tests)
        assert isinstance(root, Gate) and root.stage + 1 == stages


@given(st.integers(1, 64), st.integers(1, 64))
def test_parts_are_no_longer_than_the_chain(width, chain):
    found = parts(width, chain)
    assert sum(found) == width and max(found) <= chain and max(found) - min(found) <= 1
    assert len(found) == 1 or len(found) - 1 < width / chain


def test_a_schedule():
    assert Schedule.of(PipelineRegisters(), [32, 64], [], ("and", 0, 1)).stages == 3
    assert Schedule.of(PipelineRegisters(), [32], [2], ("and", 0, 1)).stages == 5
    cut = Schedule.of(PipelineRegisters(chain=16, levels=1, sums=True), [32, 8], [2], ("and", 0, 1, 2))
    assert cut.ready == (3, 2, 6) and cut.together == 6 and cut.stages == 7
    assert [additions(n) for n in (1, 2, 3, 4, 5)] == [0, 1, 2, 2, 3]
