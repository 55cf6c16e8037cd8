// Arrays that loops take, and how Python calls a loop: with one word for each number, and two for each array.
//
// Nothing of the C++ library is used, so that nothing has to be linked.
#pragma once

#include <stdint.h>

namespace splitjoin {

// Elements that lie contiguously, which somebody else owns. Constant elements are only read.
template <typename T>
struct Array {
    T *data;
    int64_t size;

    template <typename I>
    T &operator[](I at) const { return data[at]; }
};

using Codes = Array<const uint64_t>;  // codes of keys, and places of tuples
using Rows = Array<const int64_t>;    // numbers of rows, groups and positions, and times
using Bytes = Array<const uint8_t>;
using CodesOut = Array<uint64_t>;
using RowsOut = Array<int64_t>;
using BytesOut = Array<uint8_t>;

template <typename T>
constexpr T least_of(T a, T b) { return b < a ? b : a; }
template <typename T>
constexpr T greatest_of(T a, T b) { return a < b ? b : a; }
// The float and the code as wide as so many bytes.
template <int bytes>
struct Width;
template <>
struct Width<4> {
    using Real = float;
    using Code = uint32_t;
};
template <>
struct Width<8> {
    using Real = double;
    using Code = uint64_t;
};
constexpr uint64_t word(int64_t number) { return static_cast<uint64_t>(number); }

// The letter of an argument, by which Python checks what it gives, and how it is made of the next words.
template <typename T>
struct Argument;
template <>
struct Argument<int64_t> {
    static constexpr char kind = 'n';
    static int64_t next(const uint64_t *&words) { return static_cast<int64_t>(*words++); }
};
template <>
struct Argument<uint64_t> {
    static constexpr char kind = 'w';
    static uint64_t next(const uint64_t *&words) { return *words++; }
};
template <typename T>
constexpr char letter = T(0.5) != T(0) ? (sizeof(T) == 4 ? 'F' : 'D') : sizeof(T) == 1 ? 'B' : sizeof(T) == 2 ? 'H' :
    T(-1) < T(0) ? (sizeof(T) == 4 ? 'S' : 'I') : sizeof(T) == 4 ? 'L' : 'U';
template <typename T>
constexpr char letter<const T> = letter<T> + ('a' - 'A');
template <typename T>
struct Argument<Array<T>> {
    static constexpr char kind = letter<T>;
    static Array<T> next(const uint64_t *&words) {
        words += 2;
        return {reinterpret_cast<T *>(words[-2]), static_cast<int64_t>(words[-1])};
    }
};

// A loop as Python finds it: its name, the letters of its arguments, and what calls it with their words; or with a number
// and the address of the words of its other arguments, as threads do (`threads.hpp`).
struct Entry {
    const char *name, *kinds;
    int64_t (*call)(const uint64_t *words);
    int64_t (*enter)(int64_t number, int64_t block);
};

template <auto function>
struct Called;
template <typename... Args, int64_t (*function)(Args...)>
struct Called<function> {
    static constexpr char kinds[] = {Argument<Args>::kind..., 0};
    struct Result {
        int64_t value;
        explicit Result(Args... args) : value(function(args...)) {}
    };
    // Braces have the arguments made from left to right.
    static int64_t call(const uint64_t *words) { return Result{Argument<Args>::next(words)...}.value; }
};
template <typename... Args, void (*function)(Args...)>
struct Called<function> {
    static constexpr char kinds[] = {Argument<Args>::kind..., 0};
    struct Result {
        explicit Result(Args... args) { function(args...); }
    };
    static int64_t call(const uint64_t *words) { return Result{Argument<Args>::next(words)...}, 0; }
};

// As `Called`, for a function that takes a thread's or a part's number first; it gives 1, or 0 if it failed.
template <auto function>
struct Entered;
template <typename... Args, int64_t (*function)(int64_t, Args...)>
struct Entered<function> {
    static constexpr char kinds[] = {Argument<Args>::kind..., 0};
    struct Result {
        int64_t value;
        explicit Result(int64_t number, Args... args) : value(function(number, args...)) {}
    };
    static int64_t call(int64_t number, int64_t block) {
        const uint64_t *words = reinterpret_cast<const uint64_t *>(block);
        return Result{number, Argument<Args>::next(words)...}.value;
    }
};
template <typename... Args, void (*function)(int64_t, Args...)>
struct Entered<function> {
    static constexpr char kinds[] = {Argument<Args>::kind..., 0};
    struct Result {
        Result(int64_t number, Args... args) { function(number, args...); }
    };
    static int64_t call(int64_t number, int64_t block) {
        const uint64_t *words = reinterpret_cast<const uint64_t *>(block);
        return Result{number, Argument<Args>::next(words)...}, 1;
    }
};

#define SPLITJOIN_LOOP(...) {#__VA_ARGS__, ::splitjoin::Called<__VA_ARGS__>::kinds, ::splitjoin::Called<__VA_ARGS__>::call, nullptr}
#define SPLITJOIN_ENTRY(...) {#__VA_ARGS__, ::splitjoin::Entered<__VA_ARGS__>::kinds, nullptr, ::splitjoin::Entered<__VA_ARGS__>::call}

}  // namespace splitjoin
