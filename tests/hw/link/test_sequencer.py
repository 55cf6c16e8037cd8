"""Acknowledgements that no host of this session would send change nothing."""

from amaranth.sim import Simulator

from splitjoin.link.frames import NUMBERED, RequestKind
from splitjoin_hw.link.sequencer import Sequencer


def test_replies_that_were_not_sent_cannot_be_acknowledged() -> None:
    """Such an acknowledgement is of another session, and came late. All replies are kept and sent all the same."""
    dut, sent = Sequencer(4), list[int]()

    async def bench(ctx):
        async def request(kind: int, **fields: int) -> None:
            for name, value in {"kind": kind, "limit": 4, "good": 1, **fields}.items():
                ctx.set(getattr(dut, name), value)
            await ctx.tick()
            ctx.set(dut.good, 0)

        await request(RequestKind.OPEN, session=7)
        for _ in range(4):  # all slots
            ctx.set(dut.filled, 1)
            await ctx.tick()
        ctx.set(dut.filled, 0)
        for ack in (1, 3, 4, 5, 255):
            await request(NUMBERED, seq=200, ack=ack)
            await ctx.tick()
            assert not ctx.get(dut.room), "a reply that was not sent would be overwritten"
        ctx.set(dut.taken, 1)
        for _ in range(20):
            if ctx.get(dut.send) and ctx.get(dut.slot):
                sent.append(ctx.get(dut.number))
            await ctx.tick()

    sim = Simulator(dut)
    sim.add_clock(1e-6)
    sim.add_testbench(bench)
    sim.run()
    assert sent == [0, 1, 2, 3]
