"""Tables and joins of `bench.spark_sql`: of warehouses, genomes, logs, maps and slowly changing dimensions."""

#: Tables by name, over ``range({n})`` for a scale of n, or ``range({m})``.
TABLES = {
    "events": "SELECT id, pmod(xxhash64(id), 4294967296) ip, id * 7 at, pmod(hash(id), 500) usr FROM range({n})",
    "blocks": "SELECT id, id * (4294967296 div {m}) low, id * (4294967296 div {m}) + 60000 high FROM range({m})",
    "items": "SELECT id, cast(pmod(hash(id), 1000000) / 100 AS decimal(9, 2)) price, cast(pmod(hash(id, 1), 1000) "
             "AS int) qty, date_add(date'2024-01-01', cast(pmod(hash(id, 2), 700) AS int)) sold, pmod(hash(id, 3), "
             "60) kind FROM range({n})",
    "bands": "SELECT id, cast(pmod(hash(id, 4), 1000000) / 100 AS decimal(9, 2)) lo, cast(pmod(hash(id, 4), "
             "1000000) / 100 + 3 AS decimal(9, 2)) hi, cast(pmod(hash(id, 5), 1000) AS int) least FROM range({m})",
    "rates": "SELECT id, pmod(id, 60) kind, date_add(date'2024-01-01', cast(id * 700 div {m} AS int)) valid_from, "
             "date_add(date'2024-01-01', cast((id + 1) * 700 div {m} AS int)) valid_to, id / 7 rate FROM range({m})",
    "genes": "SELECT id, pmod(xxhash64(id, 6), 100000000) a, pmod(xxhash64(id, 6), 100000000) + 900 b FROM "
             "range({n})",
    "reads": "SELECT id, pmod(xxhash64(id, 7), 100000000) a, pmod(xxhash64(id, 7), 100000000) + 150 b FROM "
             "range({m})",
    "points": "SELECT id, pmod(hash(id, 8), 100000) / 100D x, pmod(hash(id, 9), 100000) / 100D y FROM range({n})",
    "shops": "SELECT id, pmod(hash(id, 10), 100000) / 100D x, pmod(hash(id, 11), 100000) / 100D y FROM range({m})",
    "words": "SELECT id, hex(xxhash64(id, 12)) word FROM range({n})",
    "spans": "SELECT id, hex(xxhash64(id, 13)) first, concat(substring(hex(xxhash64(id, 13)), 1, 4), 'G') last FROM"
             " range({m})",
    "visits": "SELECT id, id * 7 * {n} div {m} begin, id * 7 * {n} div {m} + 40 ending, pmod(hash(id), 500) usr "
              "FROM range({m})",
    "few": "SELECT id, id * 100 low, id * 100 + 50 high FROM range(100)",
    "lines": "SELECT id, pmod(hash(id, 14), {n} div 4) oid, date_add(date'2023-01-01', cast(pmod(hash(id, 15), "
             "1400) AS int)) ship, date_add(date'2023-01-01', cast(pmod(hash(id, 15), 1400) + pmod(hash(id, 16), "
             "30) AS int)) receipt, cast(pmod(hash(id, 17), 50) AS int) quantity, cast(pmod(hash(id, 18), 9000000) "
             "/ 100 AS decimal(12, 2)) price, pmod(hash(id, 19), 100) supp FROM range({n})",
    "orders": "SELECT id, date_add(date'2023-01-01', cast(pmod(hash(id, 20), 1400) AS int)) ordered, "
              "cast(pmod(hash(id, 21), 50000000) / 100 AS decimal(12, 2)) total, pmod(hash(id, 22), 900) cust FROM "
              "range({m})",
    "promos": "SELECT id, date_add(date'2023-01-01', cast(pmod(hash(id, 23), 1400) AS int)) starts, "
              "date_add(date'2023-01-01', cast(pmod(hash(id, 23), 1400) + 2 AS int)) ends, cast(40 + pmod(hash(id, "
              "24), 10) AS int) least FROM range({m})",
    "incomes": "SELECT id, id * 10000 low, id * 10000 + 9999 high FROM range(20)",
    "pay": "SELECT id, pmod(hash(id, 25), 1000000) salary, pmod(hash(id, 25), 1000000) * 3 + pmod(hash(id, 26), "
           "900) tax FROM range({n})",
    "boxes": "SELECT id, pmod(hash(id, 27), 100000) / 100D x, pmod(hash(id, 28), 100000) / 100D y, 3D wide, 4D high"
             " FROM range({m})",
    "versions": "SELECT id, date_add(date'2024-01-01', cast(id * 700 div {m} AS int)) since, CASE WHEN id % 50 > 0 "
                "THEN date_add(date'2024-01-01', cast((id + 1) * 700 div {m} AS int)) END until FROM range({m})",
}
#: Name, statement, and whether splitjoin is to run its join.
QUERIES = [
    ("IP ranges",
     "SELECT count(*), sum(b.id) FROM events e JOIN blocks b ON e.ip BETWEEN b.low AND b.high", True),
    ("IP ranges, left",
     "SELECT count(*), count(b.id) FROM events e LEFT JOIN blocks b ON e.ip BETWEEN b.low AND b.high", True),
    ("price bands",
     "SELECT count(*), sum(i.qty) FROM items i JOIN bands b ON i.price >= b.lo AND i.price < b.hi", True),
    ("price bands, quantity",
     "SELECT count(*), sum(b.id) FROM items i JOIN bands b ON i.price BETWEEN b.lo AND b.hi AND i.qty >= "
     "b.least", True),
    ("SCD",
     "SELECT count(*), sum(r.id) FROM items i JOIN rates r ON i.sold >= r.valid_from AND i.sold < r.valid_to", True),
    ("SCD, left",
     "SELECT i.kind, count(r.id) FROM items i LEFT JOIN rates r ON i.sold >= r.valid_from AND i.sold < r.valid_to "
     "GROUP BY i.kind", True),
    ("SCD with a key",
     "SELECT count(*), sum(r.id) FROM items i JOIN rates r ON i.kind = r.kind AND i.sold >= r.valid_from AND i.sold"
     " < r.valid_to", False),
    ("overlap",
     "SELECT count(*), sum(g.id * r.id) FROM genes g JOIN reads r ON g.a <= r.b AND r.a <= g.b", True),
    ("overlap, exists",
     "SELECT count(*), sum(id) FROM reads r WHERE EXISTS (SELECT 1 FROM genes g WHERE g.a <= r.b AND r.a <= "
     "g.b)", True),
    ("overlap, not exists",
     "SELECT count(*), sum(id) FROM genes g WHERE NOT EXISTS (SELECT 1 FROM reads r WHERE g.a <= r.b AND r.a <= "
     "g.b)", True),
    ("overlap by greatest and least",
     "SELECT count(*), sum(g.id) FROM genes g JOIN reads r ON greatest(g.a, r.a) <= least(g.b, r.b)", True),
    ("nearby shops",
     "SELECT count(*), sum(s.id) FROM points p JOIN shops s ON abs(p.x - s.x) <= 2 AND abs(p.y - s.y) <= 2", True),
    ("text ranges",
     "SELECT count(*), sum(s.id) FROM words w JOIN spans s ON w.word BETWEEN s.first AND s.last", True),
    ("visits",
     "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON e.at BETWEEN v.begin AND v.ending", True),
    ("visits of a user",
     "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON e.usr = v.usr AND e.at BETWEEN v.begin AND "
     "v.ending", False),
    ("times nearby",
     "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON abs(e.at - v.begin) <= 15", True),
    ("times nearby, other users",
     "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON e.at >= v.begin - 15 AND e.at <= v.begin + 15 AND "
     "e.usr <> v.usr", True),
    ("equality or range",
     "SELECT count(*), sum(b.id) FROM items i JOIN bands b ON i.id = b.id OR (i.price >= b.lo AND i.price < "
     "b.hi)", True),
    ("two joins",
     "SELECT i.kind, count(*) FROM items i JOIN bands b ON i.price >= b.lo AND i.price < b.hi JOIN rates r ON "
     "i.sold >= r.valid_from AND i.sold < r.valid_to GROUP BY i.kind", True),
    ("full",
     "SELECT count(*), count(g.id), count(r.id) FROM genes g FULL JOIN reads r ON g.a <= r.a AND r.a <= g.b", True),
    ("equality alone",
     "SELECT count(*), sum(i.qty) FROM items i JOIN bands b ON i.qty = b.least", False),
    ("few rows",
     "SELECT count(*), sum(f.id) FROM few f JOIN bands b ON b.lo BETWEEN f.low AND f.high", False),
    ("shipped in a promotion",
     "SELECT count(*), sum(p.id) FROM lines l JOIN promos p ON l.ship BETWEEN p.starts AND p.ends AND l.quantity >="
     " p.least", True),
    ("shipped in a promotion, left",
     "SELECT l.supp, count(p.id) FROM lines l LEFT JOIN promos p ON l.ship BETWEEN p.starts AND p.ends AND "
     "l.quantity >= p.least GROUP BY l.supp", True),
    ("order with a dearer line",
     "SELECT count(*), sum(id) FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.ship BETWEEN o.ordered AND"
     " o.ordered + 2 AND l.price > o.total)", True),
    ("order without a dearer line",
     "SELECT count(*), sum(id) FROM orders o WHERE NOT EXISTS (SELECT 1 FROM lines l WHERE l.ship BETWEEN o.ordered"
     " AND o.ordered + 2 AND l.price > o.total)", True),
    ("suppliers of an order",
     "SELECT count(*) FROM lines a WHERE EXISTS (SELECT 1 FROM lines b WHERE b.oid = a.oid AND b.supp <> "
     "a.supp)", False),
    ("order open on a day",
     "SELECT count(*), sum(l.quantity) FROM orders o JOIN lines l ON o.ordered >= l.ship AND o.ordered < l.receipt "
     "AND o.total < l.price", True),
    ("nearly the same price",
     "SELECT count(*), sum(l.id) FROM orders o JOIN lines l ON l.price BETWEEN o.total - 2 AND o.total + 2", True),
    ("income bands",
     "SELECT b.id, count(*) FROM pay p JOIN incomes b ON p.salary BETWEEN b.low AND b.high GROUP BY b.id", False),
    ("more salary, less tax",
     "SELECT count(*) FROM pay a JOIN pay b ON a.salary > b.salary AND a.tax < b.tax", True),
    ("price neighbours",
     "SELECT count(*) FROM items a JOIN items b ON b.price > a.price AND b.price < a.price + 0.5", True),
    ("contained",
     "SELECT count(*), sum(g.id) FROM genes g JOIN reads r ON g.a <= r.a AND r.b <= g.b", True),
    ("within 500 behind",
     "SELECT count(*), sum(r.id) FROM genes g JOIN reads r ON r.a BETWEEN g.b AND g.b + 500", True),
    ("overlap, left",
     "SELECT count(*), count(r.id) FROM genes g LEFT JOIN reads r ON g.a <= r.b AND r.a <= g.b", True),
    ("overlap by chromosome",
     "SELECT count(*), sum(r.id) FROM genes g JOIN reads r ON g.a % 24 = r.a % 24 AND g.a <= r.b AND r.a <= "
     "g.b", False),
    ("IP in no range",
     "SELECT count(*), sum(id) FROM events e WHERE NOT EXISTS (SELECT 1 FROM blocks b WHERE e.ip BETWEEN b.low AND "
     "b.high)", True),
    ("IP ranges of some users",
     "SELECT b.id % 40, count(*) FROM events e JOIN blocks b ON e.ip >= b.low AND e.ip <= b.high WHERE e.usr % 2 = "
     "0 GROUP BY 1", True),
    ("visits of others at the same time",
     "SELECT count(*) FROM visits a JOIN visits b ON a.begin < b.ending AND b.begin < a.ending AND a.usr < "
     "b.usr", True),
    ("event soon after a visit",
     "SELECT count(*), sum(e.id) FROM events e WHERE EXISTS (SELECT 1 FROM visits v WHERE e.at > v.ending AND e.at "
     "<= v.ending + 3)", True),
    ("SCD with an open end",
     "SELECT count(*), sum(v.id) FROM items i JOIN versions v ON i.sold >= v.since AND (i.sold < v.until OR v.until"
     " IS NULL AND i.qty < 9)", True),
    ("SCD, right",
     "SELECT count(*), count(i.id) FROM items i RIGHT JOIN versions v ON i.sold >= v.since AND i.sold < v.until", True),
    ("points in boxes",
     "SELECT count(*), sum(b.id) FROM points p JOIN boxes b ON p.x >= b.x AND p.x < b.x + b.wide AND p.y >= b.y AND"
     " p.y < b.y + b.high", True),
    ("shops by distance",
     "SELECT count(*), sum(s.id) FROM points p JOIN shops s ON (p.x - s.x) * (p.x - s.x) + (p.y - s.y) * (p.y - "
     "s.y) <= 4", True),
    ("text ranges, exists",
     "SELECT count(*) FROM words w WHERE EXISTS (SELECT 1 FROM spans s WHERE w.word BETWEEN s.first AND s.last)", True),
    ("a case",
     "SELECT count(*), sum(b.id) FROM items i JOIN bands b ON CASE WHEN i.qty > 500 THEN i.price >= b.lo AND "
     "i.price < b.hi ELSE i.qty = b.least + 1 AND i.price < b.lo END", True),
    ("sold soon after it shipped",
     "SELECT count(*), sum(l.id) FROM items i JOIN lines l ON l.ship < i.sold AND l.ship >= i.sold - 1 AND l.quantity "
     "> 45 AND l.price < i.price", True),
    ("received just after another order",
     "SELECT o.cust, count(*) FROM orders o JOIN lines l ON l.receipt > o.ordered AND l.receipt <= o.ordered + 1 AND "
     "l.supp <> o.cust GROUP BY o.cust", True),
    ("later than another supplier",
     "SELECT count(*) FROM lines a JOIN lines b ON b.receipt > a.receipt AND b.receipt <= a.receipt + 1 AND b.ship < "
     "a.ship - 25 AND a.supp <> b.supp", True),
    ("overlap by half a read",
     "SELECT count(*), sum(r.id) FROM genes g JOIN reads r ON least(g.b, r.b) - greatest(g.a, r.a) >= 75", True),
    ("reads in no gene",
     "SELECT count(*), sum(id) FROM reads r WHERE NOT EXISTS (SELECT 1 FROM genes g WHERE r.a >= g.a AND r.b <= "
     "g.b)", True),
    ("genes that overlap",
     "SELECT count(*) FROM genes a JOIN genes b ON a.id < b.id AND a.a <= b.b AND b.a <= a.b", True),
    ("ranges that are used",
     "SELECT count(*), sum(id) FROM blocks b WHERE EXISTS (SELECT 1 FROM events e WHERE e.ip BETWEEN b.low AND b.high "
     "AND e.usr < 250)", True),
    ("price bands, full",
     "SELECT count(*), count(i.id), count(b.id) FROM items i FULL JOIN bands b ON i.price >= b.lo AND i.price < b.hi",
     True),
    ("prices with tax",
     "SELECT count(*), sum(b.id) FROM items i JOIN bands b ON i.price * 1.19 BETWEEN b.lo AND b.hi", True),
    ("visits that overlap by ten",
     "SELECT count(*) FROM visits a JOIN visits b ON a.id < b.id AND least(a.ending, b.ending) - greatest(a.begin, "
     "b.begin) >= 10", True),
    ("events outside of visits",
     "SELECT count(*), sum(e.id) FROM events e WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE e.at BETWEEN v.begin AND "
     "v.begin + 8)", True),
    ("visits by timestamps",
     "SELECT count(*), sum(v.id) FROM events e JOIN visits v ON timestamp_seconds(e.at) BETWEEN timestamp_seconds("
     "v.begin) - INTERVAL 5 SECONDS AND timestamp_seconds(v.ending)", True),
    ("versions when a rate begins",
     "SELECT count(*), sum(v.id) FROM rates r JOIN versions v ON v.since <= r.valid_from AND v.until > r.valid_from "
     "AND r.kind > 30", True),
    ("two kinds of bands",
     "SELECT count(*), sum(b.n) FROM items i JOIN (SELECT lo, hi, id n FROM bands UNION ALL SELECT lo + 1, hi + 2, -id "
     "FROM bands) b ON i.price > b.lo AND i.price <= b.hi", True),
]
