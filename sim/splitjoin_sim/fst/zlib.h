// The part of zlib that Verilator's writer of FST files calls, so that traces need no library of the system.
//
// The writer stores what it gave to compress2 as it is where that did not become smaller. Here it never does: values
// are compressed by LZ4, and what is left for zlib is two bytes a cycle and some for each signal.

#pragma once

using uLong = unsigned long;
using uLongf = unsigned long;
using Bytef = unsigned char;

constexpr int Z_OK = 0;

inline uLong compressBound(uLong size) { return size; }

inline int compress2(Bytef*, uLongf* length, const Bytef*, uLong size, int) {
    *length = size;
    return Z_OK;
}
