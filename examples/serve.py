"""A server of continuous joins, and its clients, which need nothing but pyarrow: one puts, one follows, one asks.

Run: python examples/serve.py [--rows N]. It starts `splitjoin serve` with a file like the one below, and ends it.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

FILE = """
listen = "127.0.0.1:0"     # any free port
folder = "results"

[epochs]
delay = 0.2                # seconds

[streams.orders]
schema = "ts:int64, price:int32"
time = "ts"

[streams.offers]
schema = "ts:int64, ask:int32"
time = "ts"

[queries.near]
sql = "SELECT o.ts, o.price, f.ask FROM orders o JOIN offers f ON abs(o.price - f.ask) <= 5"
window = "RANGE 60"
"""


def put(client, options, stream, column, rows):
    """Put the rows that the server does not have yet: after a crash of either side, nothing is lost or doubled."""
    body = json.dumps({"stream": stream}).encode()
    (answer,) = client.do_action(flight.Action("position", body), options)
    first = json.loads(answer.body.to_pybytes())["delivered"]
    schema = pa.schema([pa.field("ts", pa.int64(), False), pa.field(column, pa.int32(), False)])
    command = json.dumps({"stream": stream, "from": first}).encode()
    writer, _ = client.do_put(flight.FlightDescriptor.for_command(command), schema, options)
    for at in range(first, rows, 100):
        values = [at + i for i in range(min(100, rows - at))]
        writer.write_batch(pa.record_batch([values, [v * 7 % 50 for v in values]], schema=schema))
    writer.close()
    client.do_action(flight.Action("finish", body), options)


def main(rows):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "join.toml"
        file.write_text(FILE)
        command = [sys.executable, "-m", "splitjoin", "serve", str(file)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            port = re.search(r"serves on .*:(\d+), with", server.stderr.readline())[1]
            token = (Path(folder) / "results/_token").read_text().strip()  # which the server has made
            options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])
            with flight.connect(f"grpc://127.0.0.1:{port}") as client:
                put(client, options, "orders", "price", rows)
                put(client, options, "offers", "ask", rows)
                # A follower gets rows as they are committed; both streams end here, so this one ends too.
                batches = client.do_get(flight.Ticket(b'{"query": "near"}'), options)
                print(f"{sum(len(chunk.data) for chunk in batches):,} rows followed")
                ask = flight.Ticket(b'{"sql": "SELECT max(price) AS price FROM near"}')
                print(client.do_get(ask, options).read_all().to_pylist())
            server.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    main(parser.parse_args().rows)
