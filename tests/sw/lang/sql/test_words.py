"""`near`, `in_network` and `contains`, which stand for longer conditions, beside what they mean in plain Python."""

from __future__ import annotations

import ipaddress
import math
import random
from typing import Any

import pyarrow as pa
import pytest

import splitjoin
from splitjoin import PredicateError, StatementError


def numbered(**columns: Any) -> pa.Table:
    return pa.table({"id": range(len(next(iter(columns.values()))))} | columns)


def pairs(r: pa.Table, s: pa.Table, on: str) -> list[tuple[int, int]]:
    """The pairs of a join, which a statement has too."""
    found = splitjoin.join(r, s, on=on, select=["id_r", "id_s"]).to_pydict()
    joined = [*zip(found["id_r"], found["id_s"], strict=True)]
    told = splitjoin.sql(f"SELECT r.id, s.id AS other FROM r JOIN s ON {on}", r=r, s=s).to_pydict()
    assert sorted(zip(told["id"], told["other"], strict=True)) == sorted(joined)
    return sorted(joined)


def kilometres(a: tuple[float, float], b: tuple[float, float]) -> float:
    """The haversine formula."""
    (lat, lon), (other, east) = ([math.radians(x) for x in point] for point in (a, b))
    half = math.sin((other - lat) / 2) ** 2 + math.cos(lat) * math.cos(other) * math.sin((east - lon) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(min(1.0, half)))


def test_near_is_the_great_circle_across_the_date_line_and_at_the_poles() -> None:
    rng = random.Random(4)
    points = [[(rng.uniform(-90, 90), rng.uniform(-180, 180)) for _ in range(40)] + corners for corners in (
        [(89.99, 10.0), (0.0, 179.99), (-90.0, 0.0), (51.5, -0.1)],
        [(89.99, -170.0), (0.0, -179.99), (-89.9, 90.0), (51.5, -0.11)])]
    reach = [rng.choice([0.0, 3.0, 2000.0, 15000.0, 30000.0, -1.0]) for _ in points[1]]
    r = numbered(lat=[p[0] for p in points[0]], lon=[p[1] for p in points[0]])
    s = numbered(lat=[p[0] for p in points[1]], lon=[p[1] for p in points[1]], km=reach)
    for limit in (20, 5000):
        assert pairs(r, s, f"near(r.lat, r.lon, s.lat, s.lon, {limit})") == [
            (n, m) for n, a in enumerate(points[0]) for m, b in enumerate(points[1]) if kilometres(a, b) <= limit]
    assert pairs(r, s, "near(r.lat, r.lon, s.lat, s.lon, s.km)") == [
        (n, m) for n, a in enumerate(points[0]) for m, b in enumerate(points[1]) if kilometres(a, b) <= reach[m]]


def test_in_network_is_that_of_ipaddress() -> None:
    rng = random.Random(5)
    addresses = [str(ipaddress.IPv4Address(rng.choice([10 << 24, 0, 255 << 24]) + rng.randrange(1 << 24)))
                 for _ in range(60)] + ["10.1.2", "10.1.2.256", "10.01.2.3", "::1", "", None]
    networks = [f"{rng.choice(addresses[:60])}/{rng.randrange(33)}" for _ in range(40)] + [
        addresses[0], "0.0.0.0/0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0/8", "fe80::/10", None]
    wanted = []
    for m, network in enumerate(networks):
        try:
            known = ipaddress.IPv4Network(network or "", strict=False)
        except ValueError:
            continue
        wanted += [(n, m) for n, address in enumerate(addresses[:60]) if ipaddress.IPv4Address(address) in known]
    r, s = numbered(ip=addresses), numbered(net=networks)
    assert len(wanted) > 200
    assert pairs(r, s, "in_network(r.ip, s.net)") == sorted(wanted)
    ours = sum(address.startswith("10.") for address in addresses[:60])
    assert len(splitjoin.join(r, s, on="in_network(r.ip, '10.0.0.0/8') AND s.id = 0")) == ours


def test_contains_is_half_open_of_a_point_and_whole_of_an_interval() -> None:
    r, s = numbered(a=[1, 4, 7], b=[4, 9, 7]), numbered(p=[1, 3, 4, 8, 9], q=[4, 5, 9, 9, 9])
    assert pairs(r, s, "contains(r.a, r.b, s.p)") == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert pairs(r, s, "contains(r.a, r.b, s.p, s.q)") == [(0, 0), (1, 2), (1, 3), (1, 4)]
    texts = numbered(t=["abc", "b"])
    assert len(splitjoin.join(texts, texts, on="contains(r.t, 'c') AND s.t = 'b'")) == 1


@pytest.mark.parametrize(("on", "message"), [
    ("near(r.x, s.x)", r"near\(\) takes latitude and longitude .* not 2 values"),
    ("near(r.x, r.x, s.x, s.x, 'far')", r"a number from 0 on or a column, such as 2.5, not 'far'"),
    ("near(r.x, r.x, s.x, s.x, -2)", "not -2"), ("in_network(r.x)", r"in_network\(\) takes an address and a network"),
    ("contains(r.x)", r"contains\(\) takes start and end of an interval")])
def test_what_they_do_not_take_is_named(on: str, message: str) -> None:
    table = pa.table({"x": [1]})
    with pytest.raises(PredicateError, match=message):
        splitjoin.join(table, table, on=on)
    with pytest.raises((PredicateError, StatementError), match=message):
        splitjoin.sql(f"SELECT r.x FROM r JOIN s ON {on}", r=table, s=table)
