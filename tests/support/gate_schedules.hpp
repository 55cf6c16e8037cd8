// Random runs of ScaleGate by fibers (`interleaving.cpp`), and what must hold of their histories.

namespace splitjoin {

constexpr int64_t most_sources = 64, most_readers = 3, most_records = 40;

struct Added {
    int64_t time, began, ended;
};
struct GotRecord {
    int64_t time, source, value, began, ended;  // a value of 0 for null
};

struct GateRun {
    ScaleGate gate;
    int64_t tick, sources, opener, opened, base, readers, reader_opened, ended_sources;
    Added added[most_sources][most_records];
    int64_t counts[most_sources], closing[most_sources], closed[most_sources], births[most_sources];
    GotRecord got[most_readers][4096];
    int64_t counted[most_readers], from[most_readers], stops[most_readers], overflow;
};

inline int64_t source_thread(int64_t address, int64_t s) {
    GateRun &run = *reinterpret_cast<GateRun *>(address);
    const bool is_late = run.opener >= 0 && s == run.sources - 1;
    while (is_late && !run.opened) SPLITJOIN_STEP();
    if (is_late && run.opened == 2) return run.ended_sources++, 0;
    for (int64_t n = 0; n < run.counts[s]; n++) {
        Added &one = run.added[s][n];
        if (is_late) one.time += run.base;
        if (s == run.opener && n == run.counts[s] / 2 && n) {
            run.births[run.sources - 1] = run.tick++;
            run.base = run.gate.open_source(run.sources - 1, s);
            run.opened = 1;
        }
        one.began = run.tick++;
        const int64_t value = 1 + s * most_records + n;
        run.gate.add(s, one.time, s, &value, 1);
        one.ended = run.tick++;
    }
    run.closing[s] = run.tick++;
    run.gate.close_source(s);
    run.closed[s] = run.tick++;
    if (s == run.opener && !run.opened) run.opened = 2, run.closing[run.sources - 1] = run.closed[run.sources - 1] = 0;
    run.ended_sources++;
    return 0;
}

inline int64_t reader_thread(int64_t address, int64_t r) {
    GateRun &run = *reinterpret_cast<GateRun *>(address);
    const bool is_late = r && r == run.readers - 1;
    while (is_late && !run.reader_opened) SPLITJOIN_STEP();
    if (run.from[r] < 0) return 0;
    for (int64_t taken = 0; run.counted[r] < 4096;) {
        const bool is_last = run.ended_sources == run.sources;
        GotRecord &one = run.got[r][run.counted[r]];
        one.began = run.tick++;
        const int64_t *node = run.gate.read(r);
        one.time = node ? node[ScaleGate::time] : 0, one.source = node ? node[ScaleGate::source] : 0;
        one.value = node ? node[ScaleGate::record] : 0;
        one.ended = run.tick++;
        if (!node && is_last) break;
        if (node && !one.value) continue;  // where a source begins
        taken += node != nullptr;
        if (!node && run.counted[r] && !run.got[r][run.counted[r] - 1].value) {  // the last null of some is enough
            run.got[r][run.counted[r] - 1] = one;
            run.counted[r]--;
        }
        run.counted[r]++;
        if (!r && run.readers > 1 && !run.reader_opened && taken == 3) {
            run.from[run.readers - 1] = taken;
            run.gate.open_reader(run.readers - 1, 0);
            run.reader_opened = 1;
        }
        if (taken && taken == run.stops[r]) break;
    }
    run.gate.close_reader(r);
    if (!r && !run.reader_opened) run.reader_opened = 1, run.from[run.readers - 1] = -1;
    return 0;
}

// True if source `s` had come behind `time` and `rank` at `tick`: it had done so, or had begun to.
inline bool is_behind(const GateRun &run, int64_t s, int64_t time, int64_t rank, int64_t tick, bool done) {
    if (run.births[s] > tick || (done ? run.closed[s] : run.closing[s]) < tick) return true;
    if (run.births[s] && (run.base > time || (run.base == time && s > rank))) return true;
    for (int64_t n = 0; n < run.counts[s]; n++) {
        const Added &one = run.added[s][n];
        if ((done ? one.ended : one.began) < tick && (one.time > time || (one.time == time && s > rank))) return true;
    }
    return false;
}

// The number of what does not hold of a run, 0 for nothing.
inline int64_t fault_of(const GateRun &run) {
    int64_t next[most_sources] = {}, all[most_sources * most_records], total = 0;
    for (;;) {  // the order of all records, as one thread would merge them
        int64_t least = -1;
        for (int64_t s = 0; s < run.sources; s++)
            if (next[s] < run.counts[s] && !(run.opened == 2 && s == run.sources - 1) &&
                (least < 0 || run.added[s][next[s]].time < run.added[least][next[least]].time))
                least = s;
        if (least < 0) break;
        all[total++] = 1 + least * most_records + next[least]++;
    }
    for (int64_t r = 0; r < run.readers; r++) {
        int64_t at = run.from[r];
        if (at < 0) continue;
        for (int64_t n = 0; n < run.counted[r]; n++) {
            const GotRecord &one = run.got[r][n];
            const int64_t value = at < total ? all[at] : 0, source = (value - 1) / most_records;
            if (one.value) {
                if (one.value != value) return 1;  // not the next one
                const int64_t time = run.added[source][(value - 1) % most_records].time;
                if (one.source != source || one.time != time) return 2;
                for (int64_t s = 0; s < run.sources; s++)
                    if (s == source ? !((value - 1) % most_records + 1 < run.counts[s]
                                            ? run.added[s][(value - 1) % most_records + 1].began < one.ended
                                            : run.closing[s] < one.ended)
                                    : !is_behind(run, s, time, source, one.ended, false))
                        return 3;  // too early
                at++;
            } else if (value) {
                const int64_t number = (value - 1) % most_records;
                bool is_ready = number + 1 < run.counts[source] ? run.added[source][number + 1].ended < one.began
                                                                : run.closed[source] < one.began;
                for (int64_t s = 0; s < run.sources; s++)
                    is_ready &= s == source || is_behind(run, s, run.added[source][number].time, source, one.began, true);
                if (is_ready) return 4;  // null, though one was ready all the time
            }
        }
        if (at != (run.stops[r] ? least_of(run.from[r] + run.stops[r], total) : total)) return 5;
    }
    return 0;
}

inline int64_t source_call(const uint64_t *words) { return source_thread(words[0], words[1]); }
inline int64_t reader_call(const uint64_t *words) { return reader_thread(words[0], words[1]); }

// Run schedules from number `first` on, with up to `sources` sources. Returns the first one for which something does not
// hold, in words of 8 fault numbers; -1 if there is none.
inline int64_t gate_schedules(int64_t first, int64_t count, int64_t sources) {
    GateRun *made = static_cast<GateRun *>(malloc(sizeof(GateRun)));
    GateRun &run = *made;
    for (int64_t number = first; number < first + count; number++) {
        uint64_t seed = (word(number) + 1) * 0x9E3779B97F4A7C15u;
        const auto random = [&](int64_t below) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            return static_cast<int64_t>((seed >> 20) % word(below));
        };
        __builtin_memset(made, 0, sizeof run);
        run.sources = sources > 8 ? sources : 1 + random(sources), run.readers = 1 + random(most_readers);
        run.opener = run.sources > 1 && random(3) == 0 ? random(run.sources - 1) : -1;
        const int64_t gap = 1 + random(4);
        const bool is_long = random(6) == 0;  // so that nodes are used again
        for (int64_t s = 0; s < run.sources; s++) {
            run.counts[s] = random(sources > 8 ? 4 : is_long ? most_records + 1 : 12);
            run.closing[s] = run.closed[s] = INT64_MAX;
            int64_t time = random(4);
            for (int64_t n = 0; n < run.counts[s]; n++) {
                run.added[s][n] = {time, INT64_MAX, INT64_MAX};
                time += random(gap + 1);
            }
        }
        if (run.opener >= 0) run.births[run.sources - 1] = INT64_MAX;
        for (int64_t r = 0; r < run.readers; r++) run.stops[r] = random(4) ? 0 : 4 + random(4);
        if (run.readers == 1) run.reader_opened = 1;
        run.gate.make(1, run.sources, run.sources - (run.opener >= 0), run.readers,
                      run.readers - (run.readers > 1));
        Fiber *fibers[most_sources + most_readers];
        uint64_t words[most_sources + most_readers][2];
        const int64_t threads = run.sources + run.readers;
        for (int64_t n = 0; n < threads; n++) {
            words[n][0] = reinterpret_cast<uint64_t>(made);
            words[n][1] = word(n < run.sources ? n : n - run.sources);
            fibers[n] = static_cast<Fiber *>(begin(n < run.sources ? source_call : reader_call, words[n]));
        }
        int64_t fault = 0;
        // A source that stands still in the middle keeps no other one from going on: no thread waits for it.
        const int64_t still = random(2) && run.opener < 0 ? random(run.sources) : -1;
        if (still >= 0)
            for (int64_t steps = random(60); steps && resume(fibers[still], 0) == 0; steps--) {}
        for (int64_t n = 0; n < threads && !fault; n++) {
            if (n == run.sources) n = threads;  // readers end behind all sources
            Fiber *others[most_sources + most_readers];
            int64_t running = 0;
            if (n < threads && n != still) others[running++] = fibers[n];
            for (int64_t other = 0; running && other < threads; other++)
                if (other != n && other != still) others[running++] = fibers[other];
            if (running && together(others, running, &seed, 200'000) < 0) fault = 6;
        }
        for (int64_t n = 0; n < threads && !fault; n++) {
            Fiber *first_one = fibers[n];
            fibers[n] = fibers[0], fibers[0] = first_one;
            if (together(fibers, threads, &seed, 400'000) < 0) fault = 6;
        }
        if (!fault) fault = fault_of(run);
        for (int64_t n = 0; n < threads; n++) end(fibers[n]);
        if (fault != 6) run.gate.free_memory();
        if (fault) return free(made), number * 8 + fault;
    }
    free(made);
    return -1;
}

}  // namespace splitjoin
