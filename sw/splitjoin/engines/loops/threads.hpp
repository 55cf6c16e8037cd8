// Threads of a team: a board in memory from which helpers take an entry, without Python's lock; and the tickets by
// which all of them claim the tasks of an entry.
//
// An *entry* is a function of a thread's number and of the address of a *block*, int64 numbers that say where its arrays
// lie. It gives 1, or 0 if it failed.
#pragma once

#include <unistd.h>

#include "loop.hpp"

#ifdef _WIN32
extern "C" __declspec(dllimport) int __stdcall SwitchToThread();
#else
#include <sched.h>
#endif

// Tests put a step of their own before each access to what threads share.
#ifndef SPLITJOIN_STEP
#define SPLITJOIN_STEP()
#define SPLITJOIN_LOOKS 64
#define SPLITJOIN_ALERT 6000
#define SPLITJOIN_CALL(entry, number, block) (reinterpret_cast<::splitjoin::EntryOf *>(entry)(number, block))
#endif

namespace splitjoin {

using EntryOf = int64_t(int64_t number, int64_t block);

inline int64_t load(RowsOut words, int64_t at) {
    SPLITJOIN_STEP();
    return __atomic_load_n(words.data + at, __ATOMIC_SEQ_CST);
}
inline void store(RowsOut words, int64_t at, int64_t value) {
    SPLITJOIN_STEP();
    __atomic_store_n(words.data + at, value, __ATOMIC_SEQ_CST);
}
// What was there before `value` was added.
inline int64_t add(RowsOut words, int64_t at, int64_t value) {
    SPLITJOIN_STEP();
    return __atomic_fetch_add(words.data + at, value, __ATOMIC_SEQ_CST);
}
// True if `expected` was there, which is `value` now.
inline bool exchange(RowsOut words, int64_t at, int64_t expected, int64_t value) {
    SPLITJOIN_STEP();
    return __atomic_compare_exchange_n(words.data + at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
inline void relax() {
    SPLITJOIN_STEP();
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}
inline void yield_processor() {
    SPLITJOIN_STEP();
#ifdef _WIN32
    SwitchToThread();
#else
    sched_yield();
#endif
}
// Wait a little, for the `looks`-th time in a row.
inline void look_again(int64_t looks) { looks % SPLITJOIN_LOOKS ? relax() : yield_processor(); }

// --- Tickets. Tasks are numbered, and form phases of consecutive numbers that end before `limits`, which rise. A task
// may begin when all tasks of the phases before have ended, so a phase may read what the phases before have written. A
// thread claims one task after the other; none waits for a thread that has claimed nothing, so a helper that comes late,
// or not at all, delays nobody.
//
// Threads with even numbers claim a phase's first tasks first, and others its last ones. So where each phase has R's
// tasks before S's, two threads each keep to one stream as long as both are busy, and find in their caches what they
// have written themselves: memory that another processor has written may be ten times as far.

// Words of a control, each on a cache line of its own: the tasks that are left of the phase that may run, the end of
// that phase, the tasks that have ended, the number of that phase, whether threads shall claim no more, and how often a
// waiting helper gives its processor to others before it leaves.
constexpr int64_t next_task = 0, phase_limit = 8, ended = 16, phase_number = 24, stopped = 32, patience_left = 40;
constexpr int64_t control_words = 48;
// What is left of a phase is one number, to be exchanged at once: the first task above these bits, and in them the one
// behind the last; both are the end of the phase if none is left. No two phases have a number in common.
constexpr int64_t task_bits = 31, one_task = int64_t{1} << task_bits, last_mask = one_task - 1;
// The patience of helpers that may share a processor with a thread that works, and of those that do not.
constexpr int64_t short_patience = 100, long_patience = int64_t{1} << 40;

// Make `control` that of tasks in phases that end before `limits`.
inline void reset(RowsOut control, Rows limits, int64_t patient) {
    for (int64_t i = 0; i < control_words; i++) control[i] = 0;
    control[next_task] = control[phase_limit] = limits[0];
    control[patience_left] = patient ? long_patience : short_patience;
}

// The number of a task to do, or -1 if there are no more. Thread 0 does not leave before that.
inline int64_t claim(RowsOut control, Rows limits, int64_t thread) {
    for (int64_t looks = 0, turns = 0;;) {
        const int64_t left = load(control, next_task), first = left >> task_bits, last = left & last_mask;
        if (first >= limits[limits.size - 1] || load(control, stopped)) return -1;
        if (first < last) {
            // That of the phase of `left`, if `left` is still there when it is exchanged.
            const int64_t limit = load(control, phase_limit);
            const bool at_end = thread & 1;
            const int64_t task = at_end ? last - 1 : first;
            int64_t then = at_end ? left - 1 : left + one_task;
            if (last - first == 1) then = limit << task_bits | limit;
            if (exchange(control, next_task, left, then)) return task;
            continue;
        }
        if (++looks < SPLITJOIN_LOOKS) {
            relax();
            continue;
        }
        if (thread && ++turns > control[patience_left]) return -1;
        yield_processor();
    }
}

// Say that a claimed task has ended; the last one of a phase opens the next.
inline void complete(RowsOut control, Rows limits) {
    if (add(control, ended, 1) + 1 != load(control, phase_limit)) return;
    const int64_t phase = add(control, phase_number, 1) + 1;
    if (phase < limits.size) {
        store(control, phase_limit, limits[phase]);
        store(control, next_task, limits[phase - 1] << task_bits | limits[phase]);
    }
}

// Have all threads claim no more, as this one's task has not ended: its phase does not end either.
inline void stop(RowsOut control) { store(control, stopped, 1); }

// --- The board. The first thread writes an entry and its block on it and opens it. Helpers that look at the board
// enter, and the first thread closes it when it has no more work. A helper counts itself among those inside before it
// looks whether the board is open, and the first thread closes it before it looks who is inside: so either sees the
// other, and no block is left while a thread reads it. Helpers look for some time, and then leave for the interpreter.

// Words of a board, each on a cache line of its own: the job that is open, 0 for none; the threads inside; the number of
// the next one; helpers that look, or were called to; how often all were dismissed; jobs so far; the job, which is its
// entry, its block and how many threads may have it; whether one failed; and how many helpers that look shall leave.
constexpr int64_t open_job = 0, inside = 8, next_number = 16, called = 24, dismissed = 32, jobs_so_far = 40;
constexpr int64_t job_entry = 48, job_block = 49, job_size = 50, job_failed = 56, leaving = 64;
// For how many microseconds a helper sleeps between two looks, and the looks that it would have made meanwhile, once it
// has looked for some 250 microseconds without a job.
constexpr int64_t rest_microseconds = 50, rested_looks = 2200;

// Count `wanted` helpers as called, and return how many of them do not look yet.
inline int64_t summon(RowsOut board, int64_t wanted) {
    const int64_t missing = wanted - load(board, called);
    if (missing <= 0) return 0;
    add(board, called, missing);
    return missing;
}

// Count `helpers` as called no more, as they will not come.
inline void withdraw(RowsOut board, int64_t helpers) { add(board, called, -helpers); }

// Have so many helpers that look leave for the interpreter, and count as many as called: those that look again when they
// have done what it has.
inline void lend(RowsOut board, int64_t helpers) {
    add(board, called, helpers);
    store(board, leaving, helpers);
}

// Have no more helpers leave that were to be lent.
inline void keep(RowsOut board) { store(board, leaving, 0); }

// Have helpers that look leave for the interpreter.
inline void dismiss(RowsOut board) { add(board, dismissed, 1); }

// Run `entry` with `block` in this thread, as number 0, and in up to `size` - 1 helpers that look meanwhile. Returns
// when none is inside any more: 0 if one failed.
inline int64_t share(RowsOut board, int64_t entry, int64_t block, int64_t size) {
    store(board, job_entry, entry);
    store(board, job_block, block);
    store(board, job_size, size);
    store(board, next_number, 1);
    store(board, job_failed, 0);
    store(board, open_job, add(board, jobs_so_far, 1) + 1);
    const int64_t done = SPLITJOIN_CALL(entry, 0, block);
    store(board, open_job, 0);
    for (int64_t looks = 1; load(board, inside); looks++) look_again(looks);
    return done && !load(board, job_failed);
}

// Run `entry` with `block` in this thread only. Returns 0 if it failed.
inline int64_t alone(int64_t entry, int64_t block) { return SPLITJOIN_CALL(entry, 0, block); }

// Take part in jobs, until there was none for `patience` looks, or this helper is lent, or all are dismissed.
inline void attend(RowsOut board, int64_t patience) {
    const int64_t before = load(board, dismissed);
    int64_t seen = 0;
    for (int64_t looks = 0; looks < patience && load(board, dismissed) == before;) {
        int64_t job = load(board, open_job);
        if (job == 0 || job == seen) {
            const int64_t wanted = load(board, leaving);
            if (wanted > 0 && exchange(board, leaving, wanted, wanted - 1)) break;
            if (++looks > SPLITJOIN_ALERT) {
                SPLITJOIN_STEP();
                usleep(rest_microseconds);
                looks += rested_looks;
            } else {
                look_again(looks);
            }
            continue;
        }
        add(board, inside, 1);
        job = load(board, open_job);
        if (job && job != seen) {
            const int64_t number = add(board, next_number, 1);
            if (number < load(board, job_size) && !SPLITJOIN_CALL(load(board, job_entry), number, load(board, job_block)))
                store(board, job_failed, 1);
            seen = job;
            looks = 0;
        }
        add(board, inside, -1);
    }
    add(board, called, -1);
}

// Do parts of jobs as long as there are any: thread number `thread` of those that do. `tasks`: the entry, the block and
// the part of each.
inline int64_t do_parts(int64_t thread, RowsOut control, Rows limits, Rows tasks) {
    for (int64_t task; (task = claim(control, limits, thread)) >= 0; complete(control, limits))
        if (!SPLITJOIN_CALL(tasks[3 * task], tasks[3 * task + 2], tasks[3 * task + 1])) {
            stop(control);
            return 0;
        }
    return 1;
}

}  // namespace splitjoin
