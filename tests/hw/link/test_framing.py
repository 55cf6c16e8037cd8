"""Frames found in bytes: the circuit takes exactly those that the host takes, right CRC or not."""

import random
import zlib

from amaranth.sim import Simulator

from splitjoin.link.frames import CRC_BYTES, END, ESC, ESC_END, ESC_ESC, Decoder
from splitjoin_hw.link.framing import Deframer

from ...support.sampling import examples


def stuffed(content: bytes, fault: int | None, rng: random.Random) -> bytes:
    """A frame with the right CRC. ``fault``: the byte after this ESC is one that never follows it."""
    sent, escapes = bytearray(), 0
    for byte in content + zlib.crc32(content).to_bytes(CRC_BYTES, "little"):
        if byte not in (END, ESC):
            sent.append(byte)
            continue
        bad = rng.choice([b for b in range(256) if b not in (END, ESC_END, ESC_ESC)])
        sent += bytes((ESC, bad if escapes == fault else ESC_END if byte == END else ESC_ESC))
        escapes += 1
    return bytes((*sent, END))


def taken(received: bytes) -> list[bytes]:
    """The contents, up to 11 bytes each, of the frames that the circuit finds good."""
    dut, found = Deframer(), list[bytes]()

    async def bench(ctx):
        content = bytearray()
        for byte in received:
            ctx.set(dut.data, byte)
            ctx.set(dut.stb, 1)
            if ctx.get(dut.write):
                content.append(ctx.get(dut.byte))
            if byte == END:
                if ctx.get(dut.good):
                    found.append(bytes(content[:-CRC_BYTES]))
                content.clear()
            await ctx.tick()
            ctx.set(dut.stb, 0)
            await ctx.tick().repeat(11)

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    return found


def test_the_circuit_takes_the_frames_that_the_host_takes() -> None:
    rng = random.Random(1)
    received, good = bytearray((END,)), 0
    for _ in range(examples(60)):
        content = bytes(rng.choice((END, ESC, ESC_END, ESC_ESC, rng.randrange(256))) for _ in range(rng.randint(3, 9)))
        specials = sum(byte in (END, ESC) for byte in content)
        fault = rng.randrange(specials) if specials and rng.random() < 0.6 else None
        good += fault is None
        received += stuffed(content, fault, rng)
    # An ESC that stands for a wrong byte gives the right CRC where the byte is an ESC's: stuffing alone tells then.
    assert taken(bytes(received)) == Decoder().feed(bytes(received))
    assert len(taken(bytes(received))) == good
    whole = stuffed(bytes((1, ESC, 2)), None, rng)
    assert taken(whole) == [bytes((1, ESC, 2))]
    assert taken(whole.replace(bytes((ESC, ESC_ESC)), bytes((ESC, 7)))) == []
