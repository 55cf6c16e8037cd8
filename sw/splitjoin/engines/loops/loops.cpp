// The compiled loops of the CPU engine, as one library: `splitjoin_loops` lists them.
#include "keys.hpp"
#include "matches.hpp"
#include "streams.hpp"
#include "sums.hpp"
#include "times.hpp"

namespace splitjoin {
namespace {

constexpr Entry entries[] = {
    SPLITJOIN_LOOP(stored_counts), SPLITJOIN_LOOP(stored_scatter), SPLITJOIN_LOOP(probe_counts),
    SPLITJOIN_LOOP(probe_scatter), SPLITJOIN_LOOP(sort_partition), SPLITJOIN_LOOP(probe_ranges),
    SPLITJOIN_LOOP(expand), SPLITJOIN_LOOP(within), SPLITJOIN_LOOP(in_windows), SPLITJOIN_LOOP(keep_met),
    SPLITJOIN_LOOP(expand_within), SPLITJOIN_LOOP(pack), SPLITJOIN_LOOP(packed_counts),
    SPLITJOIN_LOOP(packed_scatter), SPLITJOIN_LOOP(unpack), SPLITJOIN_LOOP(extremes), SPLITJOIN_LOOP(add_dense),
    SPLITJOIN_LOOP(fill_table), SPLITJOIN_LOOP(move_table), SPLITJOIN_LOOP(add_hashed), SPLITJOIN_LOOP(by_row),
    SPLITJOIN_LOOP(least_rows), SPLITJOIN_LOOP(fold_greatest), SPLITJOIN_LOOP(mark_met), SPLITJOIN_LOOP(mark_late),
    SPLITJOIN_LOOP(first_beyond), SPLITJOIN_LOOP(first_rows), SPLITJOIN_LOOP(mark_equal),
    SPLITJOIN_LOOP(count_in_order), SPLITJOIN_LOOP(pairs_in_order), SPLITJOIN_LOOP(pairs_in_time),
    SPLITJOIN_LOOP(group_sums), SPLITJOIN_LOOP(merged_counts), SPLITJOIN_LOOP(merge_positions),
    SPLITJOIN_LOOP(last_of_group), SPLITJOIN_LOOP(first_of_group), SPLITJOIN_LOOP(note_rows), SPLITJOIN_LOOP(nearer),
    SPLITJOIN_LOOP(drop_far), SPLITJOIN_LOOP(float_sums), SPLITJOIN_LOOP(merge_times), SPLITJOIN_LOOP(find_places),
    SPLITJOIN_LOOP(take_rows<uint8_t>), SPLITJOIN_LOOP(take_rows<uint16_t>), SPLITJOIN_LOOP(take_rows<uint32_t>),
    SPLITJOIN_LOOP(take_rows<uint64_t>), {nullptr, nullptr, nullptr},
};

}  // namespace
}  // namespace splitjoin

// All loops; the last one has no name.
extern "C" __attribute__((visibility("default"))) const splitjoin::Entry *splitjoin_loops() {
    return splitjoin::entries;
}
