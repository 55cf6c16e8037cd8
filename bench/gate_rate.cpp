// Threads that add records to a ScaleGate, and threads that each get all of them (`bench.scalejoin`).
#include <time.h>

#include <thread>
#include <vector>

#include "threads/scalegate.hpp"

using namespace splitjoin;

static double seconds(clockid_t clock) {
    timespec at;
    clock_gettime(clock, &at);
    return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
}

// Fill `taken` with the seconds by the clock, and of all processors, until each of `readers` has got the `records` of
// each of `sources`, which alternate in time. Returns false if a reader did not get them in order.
extern "C" bool gate_rate(int64_t sources, int64_t readers, int64_t records, double *taken) {
    ScaleGate gate;
    if (!gate.make(4, sources, sources, readers, readers)) return false;
    bool is_good = true;
    const double began[] = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
    std::vector<std::thread> threads;
    for (int64_t s = 0; s < sources; s++)
        threads.emplace_back([&, s] {
            for (int64_t n = 0; n < records; n++) {
                const int64_t time = n * sources + s, words[] = {time, time, time, time};
                gate.add(s, time, s, words, 4);
            }
            gate.close_source(s);
        });
    for (int64_t r = 0; r < readers; r++)
        threads.emplace_back([&, r] {
            int64_t looks = 0;
            for (int64_t next = 0; next < sources * records;) {
                const int64_t *node = gate.read(r);
                if (!node) {
                    rest(++looks);
                } else if (looks = 0; node[ScaleGate::time] != never) {
                    if (node[ScaleGate::record] != next++) __atomic_store_n(&is_good, false, __ATOMIC_RELAXED);
                }
            }
            gate.close_reader(r);
        });
    for (std::thread &thread : threads) thread.join();
    taken[0] = seconds(CLOCK_MONOTONIC) - began[0], taken[1] = seconds(CLOCK_PROCESS_CPUTIME_ID) - began[1];
    gate.free_memory();
    return is_good;
}
