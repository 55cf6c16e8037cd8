// Calls of loops as fibers, which stop before each access to what threads share (`interleaving.py`).
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

// `state`: 0 for a step, 1 for a call that has ended with `value`, 2 for one that asks for what `asked`, an entry, would
// give to a number and a block.
struct Fiber {
    ucontext_t own, back;
    int64_t (*call)(const uint64_t *words);
    const uint64_t *words;
    int64_t state, value, asked[3];
    alignas(16) char stack[1 << 16];
};
Fiber *running;

void leave(int64_t state) {
    running->state = state;
    swapcontext(&running->own, &running->back);
}
void step() {
    if (running) leave(0);  // else it is no fiber that runs
}
int64_t enter(int64_t entry, int64_t number, int64_t block) {
    int64_t *asked = running->asked;
    asked[0] = entry;
    asked[1] = number;
    asked[2] = block;
    leave(2);
    return running->value;
}
void run() {
    running->value = running->call(running->words);
    leave(1);
}

}  // namespace

extern "C" {
void *begin(int64_t (*call)(const uint64_t *), const uint64_t *words) {
    Fiber *fiber = static_cast<Fiber *>(malloc(sizeof(Fiber)));
    getcontext(&fiber->own);
    fiber->own.uc_stack.ss_sp = fiber->stack;
    fiber->own.uc_stack.ss_size = sizeof fiber->stack;
    fiber->own.uc_link = nullptr;
    fiber->call = call;
    fiber->state = 0;
    fiber->words = words;
    makecontext(&fiber->own, run, 0);
    return fiber;
}
// Run on to the next step; an entry that was asked for has given `value`.
int64_t resume(Fiber *fiber, int64_t value) {
    fiber->value = value;
    running = fiber;
    swapcontext(&fiber->back, &fiber->own);
    running = nullptr;
    return fiber->state;
}
// Run on all `fibers` that have not ended in a random order of steps, until the first has. For some time each has its own
// share of the steps, as others take its processor. Returns the steps, or -1 if there are more than `most`.
int64_t together(Fiber **fibers, int64_t count, uint64_t *seed, int64_t most) {
    const auto random = [&](uint64_t below) {
        *seed ^= *seed << 13, *seed ^= *seed >> 7, *seed ^= *seed << 17;
        return (*seed >> 20) % below;
    };
    uint64_t shares[128], all = 0;
    if (fibers[0]->state == 1) return 0;
    for (int64_t steps = 0, turns = 0; steps < most; turns++) {
        if (turns % 64 == 0) {
            all = 0;
            for (int64_t n = 0; n < count; n++) all += shares[n] = random(3) ? random(8) : 1 << random(7);
        }
        uint64_t drawn = all ? random(all) : 0;
        int64_t one = 0;
        while (one < count - 1 && drawn >= shares[one]) drawn -= shares[one++];
        const int64_t bursts[] = {1, 1, 3, 20};
        for (int64_t left = bursts[random(4)]; left && fibers[one]->state != 1; left--, steps++)
            if (resume(fibers[one], 0) == 1 && one == 0) return steps + 1;
        steps++;
    }
    return -1;
}
int64_t value(Fiber *fiber, int64_t n) { return n < 0 ? fiber->value : fiber->asked[n]; }
void end(Fiber *fiber) { free(fiber); }
}

#define SPLITJOIN_STEP() step()
#define SPLITJOIN_LOOKS 2
#define SPLITJOIN_ALERT 20
#define SPLITJOIN_CALL(entry, number, block) enter(entry, number, block)
#define usleep(microseconds)
#define sched_yield()
