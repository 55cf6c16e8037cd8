// Bounded queues of records between threads. One thread writes a queue; one reads it, or several do of which each reads
// all. The writer waits for the slowest.
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "../loops/tests.hpp"
#include "../loops/threads.hpp"

namespace splitjoin {

template <typename T>
inline T acquire(const T *at) {
    SPLITJOIN_STEP();
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}
template <typename T>
inline void release(T *at, T value) {
    SPLITJOIN_STEP();
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

// Wait a little before the `looks`-th look in a row: for longer where nothing has come for some 250 microseconds.
inline void rest(int64_t looks) {
    if (looks <= SPLITJOIN_ALERT) return look_again(looks);
    SPLITJOIN_STEP();
    usleep(rest_microseconds);
}

// Zeros, of `size` elements; null if there is no more memory.
template <typename T>
T *zeros(int64_t size) {
    return static_cast<T *>(calloc(word(size), sizeof(T)));
}

constexpr int64_t apart = 16;  // words between what different threads write, two cache lines

struct Queue {
    // Records written, and up to where the writer knows them to be read; then for each reader those read, and up to
    // where it knows them to be written.
    int64_t *marks, *cells;
    int64_t width, size, readers;  // words of a record; records, a power of two

    bool make(int64_t words, int64_t records, int64_t of_readers = 1) {
        width = words, size = records, readers = of_readers;
        marks = zeros<int64_t>(apart * (readers + 1)), cells = zeros<int64_t>(width * size);
        return marks && cells;
    }
    void free_memory() const {
        free(marks);
        free(cells);
    }

    // Where the writer may write the next record, which it then publishes; null if there is no room.
    int64_t *room() const {
        if (marks[0] - marks[1] == size) {
            int64_t read = marks[0];
            for (int64_t r = 1; r <= readers; r++) read = least_of(read, acquire(marks + r * apart));
            marks[1] = read;
            if (marks[0] - read == size) return nullptr;
        }
        return cells + (marks[0] & (size - 1)) * width;
    }
    void publish() const { release(marks, marks[0] + 1); }
    bool is_read() const {
        for (int64_t r = 1; r <= readers; r++)
            if (acquire(marks + r * apart) != marks[0]) return false;
        return true;
    }

    // The oldest record that a reader has not removed yet; null if there is none.
    const int64_t *front(int64_t reader = 0) const {
        int64_t *mine = marks + (reader + 1) * apart;
        if (mine[0] == mine[1] && (mine[1] = acquire(marks)) == mine[0]) return nullptr;
        return cells + (mine[0] & (size - 1)) * width;
    }
    void pop(int64_t reader = 0) const {
        int64_t *mine = marks + (reader + 1) * apart;
        release(mine, mine[0] + 1);
    }
};

}  // namespace splitjoin
