// The threads of the papers' architectures, as a library of their own: `splitjoin_loops` lists what runs in them.
#include "celljoin.hpp"
#include "handshake.hpp"
#include "low_latency.hpp"
#include "scalejoin.hpp"
#include "session.hpp"
#include "splitjoin.hpp"

namespace splitjoin {
namespace {

constexpr Entry entries[] = {
    SPLITJOIN_LOOP(open_session), SPLITJOIN_LOOP(close_session), SPLITJOIN_LOOP(stop_session), SPLITJOIN_LOOP(feed),
    SPLITJOIN_LOOP(adjust), SPLITJOIN_LOOP(collect), SPLITJOIN_LOOP(splitjoin_core), SPLITJOIN_LOOP(celljoin_core),
    SPLITJOIN_LOOP(handshake_core), SPLITJOIN_LOOP(low_latency_core),
    SPLITJOIN_LOOP(scalejoin_core),
    {nullptr, nullptr, nullptr, nullptr}};

}  // namespace
}  // namespace splitjoin

#include "../loops/processors.hpp"
